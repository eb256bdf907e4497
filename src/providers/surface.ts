import type { Surface } from './endpoint.ts'
import { surfacesOf } from './find-endpoint.ts'

export type { Surface }

/** What a client of the Messages surface sends and a client of the Chat surface does not. */
export interface SurfaceSignals {
  readonly hasAnthropicVersion: boolean
  readonly hasXApiKey: boolean
}

/**
 * A path that only one surface has decides. Where both or neither have it, `anthropic-version` does, which
 * Anthropic's API demands and OpenAI's SDKs never send. `Authorization: Bearer` tells nothing, since Anthropic's
 * SDKs send it too from 1.0 on; `x-api-key` is what hand-written clients without the version are known by.
 */
export function chooseSurface(path: string, signals: SurfaceSignals): Surface {
  const surfaces = surfacesOf(path)
  if (surfaces.size === 1) return surfaces.has('messages') ? 'messages' : 'chat'
  return signals.hasAnthropicVersion || signals.hasXApiKey ? 'messages' : 'chat'
}
