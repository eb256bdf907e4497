import Anthropic from 'anthropic-sdk-0'
import { testAnthropic } from './anthropic-cases.ts'
import { errorClasses } from './both-ways.ts'

// This major sends the key as x-api-key and an older anthropic-version.
testAnthropic({
  createClient: (options) => new Anthropic(options),
  AuthenticationError: Anthropic.AuthenticationError,
  errorClasses,
})
