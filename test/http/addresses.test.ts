import assert from 'node:assert/strict'
import { networkOf, TrustedProxies } from '../../src/http/addresses.ts'
import { Tally } from '../../src/kernel/tally.ts'
import { test } from '../support/suite.ts'

const proxies = new TrustedProxies(['10.0.0.0/8', '192.0.2.7', 'fd00::/8'])

const clientOf = (lines: readonly string[], peer = '10.0.0.1') =>
  proxies.clientOf(
    peer,
    lines.flatMap((line) => ['X-Forwarded-For', line]),
  )

test('the client is the last address that is not a trusted proxy, since anyone can write earlier ones', () => {
  assert.equal(clientOf(['203.0.113.9']), '203.0.113.9')
  assert.equal(clientOf(['6.6.6.6, 203.0.113.9, 10.1.2.3']), '203.0.113.9')
  assert.equal(clientOf(['6.6.6.6', '203.0.113.9', '192.0.2.7']), '203.0.113.9')
  assert.equal(clientOf(['2001:db8::1,fd12::1']), '2001:db8::1')
})

test('X-Forwarded-For counts only from a trusted proxy', () => {
  assert.equal(clientOf(['1.2.3.4'], '203.0.113.9'), '203.0.113.9')
  assert.equal(clientOf(['1.2.3.4'], '192.0.2.8'), '192.0.2.8')
  assert.equal(clientOf(['1.2.3.4'], ''), '')
})

test('mapped IPv4 addresses equal plain ones', () => {
  assert.equal(clientOf(['203.0.113.9'], '::ffff:10.0.0.1'), '203.0.113.9')
  assert.equal(clientOf(['::ffff:203.0.113.9']), '203.0.113.9')
  assert.equal(clientOf(['1.2.3.4'], '::ffff:203.0.113.9'), '203.0.113.9')
})

test('a port in X-Forwarded-For is dropped', () => {
  assert.equal(clientOf(['203.0.113.9:4711']), '203.0.113.9')
  assert.equal(clientOf(['[2001:db8::1]:4711']), '2001:db8::1')
  assert.equal(clientOf(['[2001:db8::1]']), '2001:db8::1')
})

test('if a proxy wrote no valid address, the client is the proxy', () => {
  for (const line of [
    'unknown',
    '',
    ',',
    '1.2.3.4.5',
    '999.1.1.1',
    '<script>',
    `fe80::1%${'x'.repeat(5_000)}`,
    '1.2.3.4 5.6.7.8',
  ]) {
    assert.equal(clientOf([line]), '10.0.0.1', line)
    assert.equal(clientOf([`1.2.3.4, ${line}, 10.9.9.9`]), '10.9.9.9', line)
  }
  assert.equal(clientOf([]), '10.0.0.1')
})

test('an IPv6 client is its /64, in any spelling', () => {
  const same = ['2001:db8:1:2::', '2001:db8:1:2::1', '2001:db8:1:2:ffff:ffff:ffff:ffff']
  for (const address of same) assert.equal(networkOf(address), '2001:db8:1:2', address)
  assert.notEqual(networkOf('2001:db8:1:3::1'), '2001:db8:1:2')
  assert.equal(networkOf('::1'), networkOf('::2'))
  assert.equal(networkOf('2001:db8::1'), networkOf('2001:db8:0:0:9::'))
  assert.equal(networkOf('::ffff:1.2.3.4'), '1.2.3.4')
  assert.notEqual(networkOf('1.2.3.4'), networkOf('1.2.3.5'))
})

test('connections are counted per network and released', () => {
  const counts = new Tally()
  assert.deepEqual([counts.add('a', 2), counts.add('a', 2), counts.add('a', 2)], [true, true, false])
  counts.remove('a')
  assert.deepEqual([counts.add('b', 2), counts.add('a', 2), counts.add('a', 2)], [true, true, false])
})
