import asyncHooks from 'node:async_hooks'

/**
 * Loaded before a test file. node:test tracks every promise and socket to the test that made it, only to name that
 * test when an error is not caught; such an error fails the file all the same. The tracking takes a third of the CPU time
 * of a gateway in the test's own process. Should Node track otherwise one day, tests are slower again and find as much.
 */
const { createHook } = asyncHooks
asyncHooks.createHook = () => {
  asyncHooks.createHook = createHook
  return createHook({})
}
