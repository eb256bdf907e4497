import type { ErrorCode, Refusal } from '../kernel/errors.ts'
import type { Tier } from '../kernel/usage.ts'
import type { Surface } from '../kernel/vocabulary.ts'
import type { JsonObject } from '../metering/json-shape.ts'
import type { Delivered, Meter, ReplyReader, StreamMeter } from '../metering/meter.ts'
import type { RequestFacts } from '../metering/request-reader.ts'
import type { UsageReader } from './endpoint.ts'

export type { Surface }

/** All that is particular to one of the APIs that the gateway serves. Each has a folder beside this file. */
export interface SurfaceSpec {
  readonly name: Surface
  readonly endpoints: readonly string[]
  /** Headers that the clients of no other surface send. These headers decide where a path does not. */
  readonly clientHeaders: readonly string[]
  readonly upstream: UpstreamSpec
  readonly errors: ErrorSpec
  readonly readers: Readonly<Partial<Record<UsageReader, ReaderSpec>>>
  readonly tools: ToolRules
  /** Messages of a conversation can define tools, and such tools can name models. */
  readonly toolsInConversation: boolean
  /** By endpoint, the member whose items can bring tools, and so models. */
  readonly itemMembers: Readonly<Record<string, string>>
  /** The endpoint that takes the file of a batch, where batches are made of files. */
  readonly batchUpload: string | null
  readonly batchEndpoints: readonly string[]
  /** The fees that a request leads to and its reply does not state. */
  fees(facts: RequestFacts): RequestFees
  readonly pricing: SurfacePricing
}

interface UpstreamSpec {
  /** The environment variables for its URL and its key, and the provider's own variable for the key. */
  readonly variables: { readonly url: string; readonly key: string; readonly providerKey: string }
  /** Headers in which clients choose an organisation, a project or a workspace to be billed. */
  readonly accountHeaders: readonly string[]
  credential(key: string): readonly [name: string, value: string]
  /** The path to ask upstream for. `basePath` is that of the configured URL, without a slash at its end. */
  path(basePath: string, path: string): string
  /** Hosts that process in one region only, which can cost more. */
  readonly regionalHost: RegExp | null
  /** Headers that the gateway's own requests need besides the credential. */
  readonly ownHeaders: Readonly<Record<string, string>>
  /** The query with which upstream lists all of its models. */
  readonly modelListQuery: string
}

interface ErrorSpec {
  readonly requestIdHeader: string
  /** The status of errors for which the provider has another status than ours. */
  readonly statuses: Readonly<Partial<Record<ErrorCode, number>>>
  type(code: ErrorCode, status: number): string
  body(type: string, refusal: Refusal, requestId: string): Readonly<Record<string, unknown>>
}

/** One kind of reply, and the rules for the requests that lead to it. */
export interface ReaderSpec {
  /** Null where usage is stated in the events of a socket. */
  create: ((output: Delivered) => ReplyReader) | null
  /** The meter for replies that are neither a document nor events. */
  other?(): Meter
  /** The meter of a stream whose events say more than the reader takes from them. */
  readonly eventsMeter?: typeof StreamMeter
  /** Upstream states the usage of a stream only where the request asks for it. */
  readonly usageOnRequest?: true
  /** The members that limit the output. Other members that limit output elsewhere mean nothing to the endpoint. */
  readonly outputLimits?: readonly string[]
  /** A limit of 0 asks for no output at all. Elsewhere a limit of 0 is refused, or taken for no limit. */
  readonly mayBeSilent?: true
  /** Images or audio are made, and only the end of the reply says how much they used. */
  makesMedia?(body: JsonObject): boolean
  mayReason?(body: JsonObject, model: string | null): boolean
  /** Upstream stores the reply unless the request opts out, and returns it on request. */
  readonly stored?: true
}

/** The tools of a request by their types. Every other type runs upstream, types that are not known here included. */
export interface ToolRules {
  readonly runByClient: RegExp
  /** Either each of the `limited` tools has a `max_uses`, or `max_tool_calls` of the request counts them all together. */
  readonly limit: 'each' | 'together'
  readonly limited: RegExp
  readonly container: RegExp | null
}

export interface RequestFees {
  /** The request asks for a web search, which Chat Completions makes once. */
  readonly asksForSearch: boolean
  readonly searchSize: string | null
  /** Code that a message has run costs nothing beside web tools of February 2026 or later. */
  readonly codeRunsFree: boolean
}

interface SurfacePricing {
  readonly provider: string
  readonly tiers: Readonly<Record<string, Tier>>
  /** Upstream's names of speeds, on surfaces that have them: there every tier but `batch` costs the standard rates. */
  readonly speeds: Readonly<Record<string, Tier>> | null
  /** The upstream project has a tier for requests that name none. */
  readonly hasProjectTier: boolean
  /** Whether a second model of a response draws images for it, or samples like the first model. */
  readonly otherModelsDraw: boolean
}
