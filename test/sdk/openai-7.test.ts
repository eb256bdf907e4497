import OpenAI, { toFile } from 'openai'
import { testOpenai } from './openai-cases.ts'

testOpenai({
  createClient: (options) => new OpenAI(options),
  deleteResponse: (client, id) => client.responses.delete(id),
  toFile,
  AuthenticationError: OpenAI.AuthenticationError,
  requestIdField: 'requestID',
})
