import Anthropic from '@anthropic-ai/sdk'
import { testAnthropic } from './anthropic-cases.ts'

testAnthropic({
  createClient: (options) => new Anthropic(options),
  AuthenticationError: Anthropic.AuthenticationError,
  errorClasses: {
    400: 'BadRequestError',
    401: 'AuthenticationError',
    403: 'PermissionDeniedError',
    404: 'NotFoundError',
    409: 'ConflictError',
    413: 'ContentTooLargeError',
    429: 'RateLimitError',
    500: 'InternalServerError',
    503: 'ServiceUnavailableError',
    529: 'OverloadedError',
  },
})
