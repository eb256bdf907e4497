import { deviceDecisionFields } from '../api/device.ts'
import { networkOf } from '../http/addresses.ts'
import { refuse } from '../kernel/errors.ts'
import { limits } from '../kernel/limits.ts'
import { ChangeRate } from './change-rate.ts'
import { defineRoute, refused } from './route.ts'

/** Wrong codes by person and by address, so that nobody finds a code by trying. */
const wrongCodes = new ChangeRate(limits.wrongUserCodesMax, limits.deviceCodeMs)

export const decideDevice = defineRoute({
  summary: 'Approve or deny a device',
  description:
    'For people who signed in: lets the device or coding agent that shows this code act as the person. A code can be decided ' +
    'once, within ten minutes. After ten wrong codes, wait as long as `retry-after` says.',
  body: deviceDecisionFields,
  async handle({ caller, exchange, body, atMs }, { store }) {
    if (caller.kind !== 'person')
      return refused(
        'insufficient_role',
        'Only a person who signed in can approve a device. Sign in at your identity provider.',
      )
    const guessers = [caller.personId, networkOf(exchange.clientIp)]
    const seconds = Math.max(...guessers.map((name) => wrongCodes.secondsToWait(name, atMs) ?? 0))
    if (seconds > 0) {
      const message = `Too many wrong codes. Try again in ${seconds} s.`
      const headers = ['retry-after', String(seconds)]
      return { kind: 'refused', refusal: refuse('rate_limit_exceeded', message, { headers }) }
    }
    const { personId } = caller
    const status = body.approve ? 'approved' : 'denied'
    const client = await store.decideDevice({ userCode: body.user_code, personId, status, atMs })
    if (client !== null) return { object: 'device_approval', status, client }
    for (const name of guessers) wrongCodes.admit(name, atMs)
    return refused(
      'not_found',
      'No device waits with this code. Compare it with the code on the device, or begin again there.',
      'user_code',
    )
  },
})
