import OpenAI, { toFile } from 'openai-4'
import { testOpenai } from './openai-cases.ts'

// This major uses its own fetch, on node:http instead of undici.
testOpenai({
  createClient: (options) => new OpenAI(options),
  deleteResponse: (client, id) => client.responses.del(id),
  toFile,
  AuthenticationError: OpenAI.AuthenticationError,
  requestIdField: 'request_id',
})
