import type { Surface } from './service-tier.ts'

/** What rating must know beside the usage: how the call was made. */
export interface RatingContext {
  readonly surface: Surface
  readonly modelAsked: string | null
  /** The template of the endpoint, such as `/v1/chat/completions`. */
  readonly endpoint: string
  /** The upstream host processes in one region only. */
  readonly regional: boolean
  /** The usage is that of an entry of a batch. */
  readonly batch: boolean
  /** The model that the image tool of the request names. Upstream does not repeat it. */
  readonly imageToolModel?: string | null
  /**
   * The service tier that the request asked for, else the one that the upstream project gives those that ask for
   * none: what goes where a reply states no tier. Null where neither is known.
   */
  readonly tierAsked?: string | null
}
