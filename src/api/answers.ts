import { z } from 'zod'
import { accountListSchema, accountSchema, ownAccountSchema } from './account.ts'
import { adminKeySchema, createdAdminKeySchema } from './admin-key.ts'
import { addedCreditSchema, balanceSchema, creditSchema } from './credit.ts'
import { deviceApprovalSchema } from './device.ts'
import { eventSchema } from './event.ts'
import { listOf } from './fields.ts'
import { createdKeySchema, keySchema } from './key.ts'
import { endedSessionSchema, overviewSchema, sessionSchema } from './overview.ts'
import { membersSchema, personSchema } from './person.ts'
import { missingPricesSchema, priceBookSchema, pricePushSchema, setPriceSchema } from './prices.ts'
import { requestBodiesSchema, requestSchema, requestWithBillSchema } from './request.ts'
import { usageSchema } from './usage.ts'
import { deliverySchema, webhookSchema, webhookWithSecretSchema } from './webhook.ts'

const openapiSchema = z
  .looseObject({ openapi: z.literal('3.1.0'), info: z.looseObject({}), paths: z.looseObject({}) })
  .meta({ id: 'openapi_document', description: 'This document.' })

/**
 * The answer of each own endpoint. The route table, the OpenAPI document and the types of both clients, dashboard and
 * command line, are derived from it. Null: the answer has no JSON body.
 */
export const ANSWERS = {
  'POST /v1/keys': createdKeySchema,
  'GET /v1/keys': listOf(keySchema),
  'GET /v1/keys/me': keySchema,
  'GET /v1/keys/{id}': keySchema,
  'PATCH /v1/keys/{id}': keySchema,
  'DELETE /v1/keys/{id}': keySchema,
  'POST /v1/keys/{id}/revoke': keySchema,
  'POST /v1/keys/{id}/rotate': createdKeySchema,
  'GET /v1/usage': usageSchema,
  'GET /gateway/v1/requests': listOf(requestSchema),
  'GET /v1/keys/{id}/requests': listOf(requestSchema),
  'GET /gateway/v1/requests/{id}': requestWithBillSchema,
  'GET /gateway/v1/requests/{id}/bodies': requestBodiesSchema,
  'GET /gateway/v1/balance': balanceSchema,
  'POST /gateway/v1/credits': addedCreditSchema,
  'GET /gateway/v1/credits': listOf(creditSchema),
  'POST /gateway/v1/webhooks': webhookWithSecretSchema,
  'GET /gateway/v1/webhooks': listOf(webhookSchema),
  'GET /gateway/v1/webhooks/{id}': webhookSchema,
  'PATCH /gateway/v1/webhooks/{id}': webhookSchema,
  'DELETE /gateway/v1/webhooks/{id}': null,
  'POST /gateway/v1/webhooks/{id}/rotate-secret': webhookWithSecretSchema,
  'POST /gateway/v1/webhooks/{id}/test': deliverySchema,
  'GET /gateway/v1/webhooks/{id}/deliveries': listOf(deliverySchema),
  'POST /gateway/v1/webhooks/{id}/deliveries/{delivery_id}/redeliver': deliverySchema,
  'GET /gateway/v1/events': listOf(eventSchema),
  'GET /gateway/v1/events/{id}': eventSchema,
  'POST /gateway/v1/accounts': accountSchema,
  'GET /gateway/v1/accounts': accountListSchema,
  'GET /gateway/v1/accounts/self': ownAccountSchema,
  'GET /gateway/v1/accounts/{id}': accountSchema,
  'PATCH /gateway/v1/accounts/{id}': accountSchema,
  'POST /gateway/v1/accounts/{id}/suspend': accountSchema,
  'POST /gateway/v1/accounts/{id}/resume': accountSchema,
  'POST /gateway/v1/admin-keys': createdAdminKeySchema,
  'GET /gateway/v1/admin-keys': listOf(adminKeySchema),
  'POST /gateway/v1/admin-keys/{id}/revoke': adminKeySchema,
  'GET /gateway/v1/people': listOf(personSchema),
  'GET /gateway/v1/people/{id}': personSchema,
  'PATCH /gateway/v1/people/{id}': personSchema,
  'POST /gateway/v1/people/{id}/block': personSchema,
  'POST /gateway/v1/people/{id}/unblock': personSchema,
  'POST /gateway/v1/people/{id}/move': personSchema,
  'GET /gateway/v1/members': membersSchema,
  'PATCH /gateway/v1/members': membersSchema,
  'POST /gateway/v1/device': deviceApprovalSchema,
  'GET /gateway/v1/overview': overviewSchema,
  'GET /gateway/v1/prices': priceBookSchema,
  'GET /gateway/v1/prices/missing': missingPricesSchema,
  'PUT /gateway/v1/prices/{model}': setPriceSchema,
  'DELETE /gateway/v1/prices/{model}': null,
  'POST /gateway/v1/prices/push': pricePushSchema,
  'GET /gateway/openapi.json': openapiSchema,
  'GET /metrics': null,
  'POST /gateway/v1/session': sessionSchema,
  'GET /gateway/v1/session': sessionSchema,
  'DELETE /gateway/v1/session': endedSessionSchema,
} as const satisfies Readonly<Record<`${string} /${string}`, z.ZodType | null>>

/** The method and the path of an endpoint, as the OpenAPI document writes it. */
export type EndpointName = keyof typeof ANSWERS

/** What clients read in the answer of each endpoint. */
export type Answers = {
  readonly [Name in EndpointName]: (typeof ANSWERS)[Name] extends z.ZodType
    ? z.infer<(typeof ANSWERS)[Name]>
    : null
}

/** The paths that are read with GET, and their answers. */
export type GetAnswers = {
  readonly [Name in EndpointName as Name extends `GET ${infer Path}` ? Path : never]: Answers[Name]
}

/** The names in `{…}` of a path. */
export type NamesIn<Path extends string> = Path extends `${string}{${infer Name}}${infer Rest}`
  ? Name | NamesIn<Rest>
  : never
