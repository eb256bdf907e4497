import { z } from 'zod'
import { VERSION } from '../kernel/version.ts'
import { openApiDocument } from './openapi.ts'
import { defineRoute, type Management, type OwnReply, type Route, replyJson } from './route.ts'

const success = z
  .looseObject({
    openapi: z.literal('3.1.0'),
    info: z.looseObject({ title: z.string(), version: z.string() }),
    paths: z.record(z.string(), z.looseObject({})),
    components: z.looseObject({}),
  })
  .meta({ id: 'openapi_document', description: 'This document, of the version that serves it.' })

/**
 * The list of routes is given as a function, because it contains this one. The document is made when it is first
 * asked for, once for each gateway of the process.
 */
export function getOpenApi(routes: () => readonly Route[]): Route {
  const made = new WeakMap<Management, OwnReply>()
  return defineRoute({
    method: 'GET',
    template: '/gateway/openapi.json',
    access: 'admin',
    operationId: 'get_openapi',
    summary: 'This document',
    query: null,
    body: null,
    repeatable: false,
    success: { status: 200, schema: success },
    errors: ['bad_request'],
    async handle(_request, management) {
      const known = made.get(management)
      if (known !== undefined) return known
      const { servicePrefix } = management
      const reply = replyJson(200, openApiDocument(routes(), { version: VERSION, servicePrefix }))
      made.set(management, reply)
      return reply
    },
  })
}
