/** Members whose strings are prompt text on either surface. What is not here (image data, ids, URLs) is not counted. */
const TEXT_MEMBERS: ReadonlySet<string> = new Set([
  'text',
  'content',
  'input',
  'prompt',
  'instructions',
  'system',
  'description',
  'arguments',
  'output',
])

/** Deeper than any request nests its text. */
const DEPTH_MAX = 64

/** The prompt text in a JSON request body, piece by piece, or null if it cannot be read. */
export function requestTexts(body: Buffer): string[] | null {
  let root: unknown
  try {
    root = JSON.parse(body.toString('utf8'))
  } catch {
    return null
  }
  const texts: string[] = []
  collect(root, false, 0, texts)
  return texts
}

function collect(value: unknown, isText: boolean, depth: number, texts: string[]): void {
  if (depth > DEPTH_MAX) return
  if (typeof value === 'string') {
    if (isText) texts.push(value)
  } else if (Array.isArray(value)) {
    for (const item of value) collect(item, isText, depth + 1, texts)
  } else if (typeof value === 'object' && value !== null) {
    for (const [name, member] of Object.entries(value)) {
      collect(member, TEXT_MEMBERS.has(name), depth + 1, texts)
    }
  }
}
