import asyncHooks from 'node:async_hooks'

/**
 * Loaded before a test file. node:test follows every promise and socket to the test that made it, only to name that
 * test when an error is caught by nothing; such an error fails the file all the same. A gateway in the test's own process pays
 * for it with a third of its CPU time. Where Node does this otherwise one day, tests are slower again, and as honest.
 */
const { createHook } = asyncHooks
asyncHooks.createHook = () => {
  asyncHooks.createHook = createHook
  return createHook({})
}
