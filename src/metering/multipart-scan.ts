import type { PartHead } from './multipart-head.ts'

/** A field of a form. `start` and `end` are where its value stands in the body, in bytes; `end` is exclusive. */
export type MultipartField = { readonly start: number; readonly end: number } & (
  | { readonly kind: 'text'; readonly value: string }
  /** Longer than `valueBytesMax`: what it says is not known, only that it is there. */
  | { readonly kind: 'too_long' }
)

export type UnreadableMultipart =
  | 'empty'
  /** Bytes before the first boundary: some parsers skip them, some refuse. */
  | 'preamble'
  /** The boundary stands where it is not, beyond doubt, a delimiter line of its own. */
  | 'stray_boundary'
  | 'no_closing_boundary'
  | 'trailing_bytes'
  | 'bad_part_head'
  | 'part_head_too_large'
  | 'too_many_parts'
  | 'too_large'
  /** A field name that is not watched, but that some parsers read as one that is. */
  | 'ambiguous_name'
  /** A watched field that some parsers would take for a file, or decode in another way than we do. */
  | 'ambiguous_part'
  | 'not_utf8'

export type MultipartScan<Name extends string = string> =
  | {
      readonly kind: 'form'
      readonly fields: ReadonlyMap<Name, MultipartField>
      /** Watched names given more than once; `fields` has the first of each, parsers differ on which counts. */
      readonly duplicates: readonly Name[]
      readonly lengthBytes: number
    }
  | { readonly kind: 'unreadable'; readonly reason: UnreadableMultipart; readonly at: number }

/** Looks at the parts that are no watched field as they pass. What it is given is overwritten afterwards. */
export interface PartSink {
  /** A part begins. Its bytes are given if the answer is true. */
  open(head: PartHead): boolean
  write(bytes: Buffer): void
}

export interface MultipartScanLimits {
  readonly bodyBytesMax: number
  readonly partHeadBytesMax: number
  readonly partsMax: number
  readonly valueBytesMax: number
}

export const MULTIPART_SCAN_LIMITS: MultipartScanLimits = {
  bodyBytesMax: 512 * 1024 * 1024,
  partHeadBytesMax: 16 * 1024,
  partsMax: 1000,
  valueBytesMax: 1024,
}
