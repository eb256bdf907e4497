import Anthropic from '@anthropic-ai/sdk'
import { testAnthropic } from './anthropic-cases.ts'
import { errorClasses } from './both-ways.ts'

testAnthropic({
  createClient: (options) => new Anthropic(options),
  AuthenticationError: Anthropic.AuthenticationError,
  errorClasses: {
    ...errorClasses,
    413: 'ContentTooLargeError',
    503: 'ServiceUnavailableError',
    529: 'OverloadedError',
  },
})
