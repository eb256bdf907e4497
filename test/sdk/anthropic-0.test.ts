import Anthropic from 'anthropic-sdk-0'
import { testAnthropic } from './anthropic-cases.ts'

// This major sends the key as x-api-key and an older anthropic-version.
testAnthropic({
  createClient: (options) => new Anthropic(options),
  AuthenticationError: Anthropic.AuthenticationError,
  errorClasses: {
    400: 'BadRequestError',
    401: 'AuthenticationError',
    403: 'PermissionDeniedError',
    404: 'NotFoundError',
    409: 'ConflictError',
    413: 'APIError',
    429: 'RateLimitError',
    500: 'InternalServerError',
    503: 'InternalServerError',
    529: 'InternalServerError',
  },
})
