import type { ErrorCode, Refusal } from '../kernel/errors.ts'
import type { Surface } from '../kernel/vocabulary.ts'
import type { JsonObject } from '../metering/json-shape.ts'
import type { Delivered, Meter, ReplyReader } from '../metering/meter.ts'
import type { EndpointRow, UsageReader } from './endpoint.ts'
import type { RequestFacts } from './request-facts.ts'

/** Everything specific to one API. Each has a folder next to this file. */
export interface SurfaceSpec {
  readonly name: Surface
  readonly endpoints: readonly EndpointRow[]
  /** Headers that only this surface's clients send. They decide if the path does not. */
  readonly clientHeaders: readonly string[]
  readonly upstream: UpstreamSpec
  readonly errors: ErrorSpec
  readonly readers: Readonly<Partial<Record<UsageReader, ReaderSpec>>>
  readonly tools: ToolRules
  /** Whether conversation messages can define tools, which can name models. */
  readonly toolsInConversation: boolean
  /** By endpoint: the member whose items can add tools, and so models. */
  readonly itemMembers: Readonly<Record<string, string>>
  /** The upload endpoint for batch files, if batches are created from files. */
  readonly batchUpload: string | null
  readonly batchEndpoints: readonly string[]
  /** Whether code runs free of charge: together with web tools of February 2026 or later. */
  codeRunsFree(facts: RequestFacts): boolean
  /** Whether the upstream project has a default tier. */
  readonly hasProjectTier: boolean
}

interface UpstreamSpec {
  /** Environment variables for URL and key, and the provider's own variable for the key. */
  readonly variables: { readonly url: string; readonly key: string; readonly providerKey: string }
  /** Headers with which clients select a billed organisation, project or workspace. */
  readonly accountHeaders: readonly string[]
  credential(key: string): readonly [name: string, value: string]
  /** The upstream path. `basePath` is the configured URL's path, without a trailing slash. */
  path(basePath: string, path: string): string
  /** Hosts that process in a single region, which can cost more. */
  readonly regionalHost: RegExp | null
  /** Headers of the gateway's own requests, besides the credential. */
  readonly ownHeaders: Readonly<Record<string, string>>
  /** The query of a page of the model list. `after`: the last id of the page before. */
  modelListQuery(after: string | null): string
}

interface ErrorSpec {
  readonly requestIdHeader: string
  /** Statuses of errors that differ from ours on this surface. */
  readonly statuses: Readonly<Partial<Record<ErrorCode, number>>>
  type(code: ErrorCode, status: number): string
  body(type: string, refusal: Refusal, requestId: string): Readonly<Record<string, unknown>>
}

export interface ReaderSpec {
  create(output: Delivered): ReplyReader
  /** The meter for replies that are neither JSON nor events. */
  other?(): Meter
  /** Upstream states a stream's usage only if the request asks for it. */
  readonly usageOnRequest?: true
  readonly outputLimits?: readonly string[]
  /** A limit of 0 means no output. On other endpoints it is refused or means no limit. */
  readonly mayBeSilent?: true
  /** Generates images or audio, whose usage is stated only at the end. */
  makesMedia?(body: JsonObject): boolean
  mayReason?(body: JsonObject, model: string | null): boolean
  /** Upstream stores the reply unless the request opts out, and returns it on request. */
  readonly stored?: true
  /** `background` in the request is honoured: upstream works on after its answer. */
  readonly mayBeBackground?: true
}

/** The tools of a request by type. All other types run upstream, including unknown ones. */
export interface ToolRules {
  readonly runByClient: RegExp
  /** `each`: every `limited` tool has a `max_uses`. `together`: the request's `max_tool_calls` counts all. */
  readonly limit: 'each' | 'together'
  readonly limited: RegExp
  readonly container: RegExp | null
}
