import { MarkTable } from '../metering/mark-table.ts'

/** What member names, and values of `type`, say about the content of a request. */
export const MARKS = {
  /** Content whose tokens cannot be estimated from the bytes of the body: references, pages, pixels, seconds. */
  elsewhere: 1,
  tool: 2,
  /** A body with both marks may refer to the audio of an earlier answer by its id. */
  audio: 4,
  id: 8,
} as const

export const CONTENT_MARKS = new MarkTable(
  {
    file_id: MARKS.elsewhere,
    url: MARKS.elsewhere,
    container: MARKS.elsewhere,
    mcp_servers: MARKS.elsewhere,
    base64: MARKS.elsewhere,
    file_data: MARKS.elsewhere,
    input_audio: MARKS.elsewhere,
    tool_definition: MARKS.tool,
    audio: MARKS.audio,
    id: MARKS.id,
  },
  // Such as `image_url`.
  { _url: MARKS.elsewhere },
)
