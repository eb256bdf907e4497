import assert from 'node:assert/strict'
import type { NamedModels } from '../../src/kernel/model-names.ts'
import { NO_COST } from '../../src/kernel/money.ts'
import type { Surface } from '../../src/kernel/vocabulary.ts'
import { BatchEntries } from '../../src/providers/batch-requests.ts'
import type { Endpoint } from '../../src/providers/endpoint.ts'
import { findEndpoint } from '../../src/providers/find-endpoint.ts'
import { namedModels } from '../../src/providers/named-models.ts'
import { RequestReader } from '../../src/providers/read-request.ts'
import { NOT_READ, type RequestFacts } from '../../src/providers/request-facts.ts'

export type Body = string | Record<string, unknown> | FormData | null

/** Reads a body as the gateway does: in chunks, and only for endpoints that read bodies. */
export async function factsOf(
  endpoint: Endpoint | null,
  body: Body,
  contentType?: string,
): Promise<RequestFacts> {
  if (body === null || endpoint === null || endpoint.reads === 'nothing') return NOT_READ
  const whole = body instanceof FormData ? new Response(body) : null
  const text = typeof body === 'string' ? body : JSON.stringify(body)
  const bytes = whole === null ? Buffer.from(text) : Buffer.from(await whole.arrayBuffer())
  const type = contentType ?? whole?.headers.get('content-type') ?? 'application/json'
  const isBatch = endpoint.model === 'batch_entries'
  const watch = isBatch ? new BatchEntries(endpoint.surface, () => NO_COST) : undefined
  const reader = new RequestReader(endpoint, { contentType: type, contentEncoding: undefined }, watch)
  for (let at = 0; at < bytes.length; at += 777) await reader.write(bytes.subarray(at, at + 777))
  return await reader.end()
}

/** The models of a request such as `POST /v1/…`, with its query if any. */
export async function modelsOf(
  surface: Surface,
  request: string,
  body: Body = null,
  contentType?: string,
  byDefault: string | null = null,
): Promise<NamedModels> {
  const [, method = '', path = '', query = ''] = /^(\S+) ([^?]+)(.*)$/.exec(request) ?? []
  assert.notEqual(path, '')
  const endpoint = findEndpoint(surface, method === 'HEAD' ? 'GET' : method, path)
  const facts = await factsOf(endpoint, body, contentType)
  return namedModels(endpoint, path, facts, query, byDefault)
}

export function form(fields: Readonly<Record<string, string | Blob>>): FormData {
  const data = new FormData()
  for (const [name, value] of Object.entries(fields)) data.set(name, value)
  return data
}
