import assert from 'node:assert/strict'
import fc from 'fast-check'
import {
  type EndpointRules,
  isForbiddenAddress,
  judgeEndpointUrl,
  permittedAddresses,
} from '../../src/webhooks/endpoint-address.ts'
import { test } from '../support/suite.ts'
import { words } from '../support/words.ts'

const NAMES: Readonly<Record<string, readonly string[]>> = {
  'public.example': ['93.184.216.34', '2606:2800:220:1::1'],
  'private.example': ['10.1.2.3'],
  'both.example': ['93.184.216.34', '127.0.0.1'],
}

const rules = (allowPrivate: boolean): EndpointRules => ({
  allowPrivate,
  async resolveHost(host) {
    const addresses = NAMES[host]
    if (addresses === undefined) throw new Error(`queryA ENOTFOUND ${host}`)
    return addresses.map((address) => ({ address, family: address.includes(':') ? 6 : 4 }))
  },
})

const judge = (url: string, allowPrivate = false) => judgeEndpointUrl(url, rules(allowPrivate))

test('an https URL of a public host is accepted, with a port, a path and a query', async () => {
  for (const url of [
    'https://public.example',
    'https://public.example:8443/a/b?c=d',
    'https://93.184.216.34/',
  ])
    assert.equal(await judge(url), null, url)
})

test('a host name that does not resolve is accepted', async () => {
  assert.equal(await judge('https://not-yet.example/hook'), null)
})

test('a name that resolves only to private addresses is refused, localhost included', async () => {
  for (const host of ['private.example', 'localhost', 'LOCALHOST.', 'a.localhost'])
    assert.match(
      (await judge(`https://${host}/`)) ?? '',
      /^url must lead to a public address: .* has only private/,
    )
})

test('only the public addresses of a name are used', async () => {
  assert.equal(await judge('https://both.example/'), null)
  const permitted = await permittedAddresses(
    new URL('https://both.example/'),
    rules(false),
    AbortSignal.timeout(60_000),
  )
  assert.ok(permitted.length > 0 && permitted.every(({ address }) => !isForbiddenAddress(address)))
})

test('every spelling of a private address is refused', async () => {
  const hosts = words(`
    127.0.0.1 2130706433 0x7f.1 0177.0.0.1 127.1 127.0.0.1. 0 %31%32%37.0.0.1
  `)
  const wide = ['①②⑦.0.0.1', '１２７.０.０.１']
  const bracketed = [
    '[::1]',
    '[::ffff:127.0.0.1]',
    '[::ffff:7f00:1]',
    '[64:ff9b::10.0.0.1]',
    '[fd00::1]',
    '[::]',
  ]
  for (const host of [...hosts, ...wide, ...bracketed])
    assert.match((await judge(`https://${host}/`)) ?? '', /(is a|has only) private or reserved address/, host)
})

test('http, another scheme, credentials, a fragment or an invalid URL is refused, with the fix', async () => {
  assert.match((await judge('http://public.example/')) ?? '', /^url must begin with https:.*allow_private/)
  for (const url of ['ftp://public.example/', 'public.example', '/hook', 'https://', 'javascript:alert(1)'])
    assert.match((await judge(url)) ?? '', /^url must be an absolute https:\/\/ URL\.$/, url)
  for (const url of ['https://user@public.example/', 'https://user:pass@public.example/'])
    assert.match((await judge(url)) ?? '', /not contain a user or password/)
  assert.match((await judge('https://public.example/#part')) ?? '', /must not have a fragment/)
})

test('webhooks.allow_private allows http and private addresses, and nothing else', async () => {
  for (const url of ['http://127.0.0.1:9/hook', 'http://private.example/', 'https://[::1]/'])
    assert.equal(await judge(url, true), null, url)
  assert.notEqual(await judge('https://user@private.example/', true), null)
})

const FORBIDDEN: Readonly<Record<string, readonly string[]>> = {
  loopback: ['127.0.0.1', '127.255.255.254', '::1'],
  private: ['10.0.0.1', '172.16.0.1', '172.31.255.255', '192.168.1.1'],
  unspecified: ['0.0.0.0', '0.1.2.3', '::'],
  'link-local and metadata of clouds': [
    '169.254.169.254',
    'fe80::1',
    'fe80::1%eth0',
    'fec0::1',
    '168.63.129.16',
  ],
  'carrier-grade NAT': ['100.64.0.1', '100.127.255.255', '100.100.100.200'],
  'unique-local': ['fc00::1', 'fdff::1', 'fd00:ec2::254'],
  multicast: ['224.0.0.1', '239.255.255.255', 'ff02::1'],
  'documentation and benchmarks': [
    '192.0.2.1',
    '198.51.100.1',
    '203.0.113.1',
    '198.18.0.1',
    '2001:db8::1',
    '3fff::1',
  ],
  'reserved and broadcast': ['240.0.0.1', '255.255.255.255', '100::1', '5f00::1', '4000::1'],
  'mapped into IPv6': ['::ffff:127.0.0.1', '::ffff:7f00:1', '::ffff:a00:1', '0:0:0:0:0:ffff:c0a8:101'],
  'IPv4-compatible and translated': ['::127.0.0.1', '::8.8.8.8', '::ffff:0:127.0.0.1'],
  'behind NAT64': ['64:ff9b::127.0.0.1', '64:ff9b::a9fe:a9fe', '64:ff9b:1::8.8.8.8'],
  '6to4 and Teredo': ['2002:7f00:1::', '2002:808:808::1', '2001::1', '2001:0:4136:e378::1'],
  'no address': ['localhost', '', '127.1', '0x7f000001', '1.2.3.4.5'],
}

for (const [what, addresses] of Object.entries(FORBIDDEN)) {
  test(`an address that is ${what} is forbidden`, () => {
    for (const address of addresses) assert.ok(isForbiddenAddress(address), address)
  })
}

test('public addresses are allowed, also mapped and NAT64 ones', () => {
  const permitted = [
    '8.8.8.8',
    '172.32.0.1',
    '100.128.0.1',
    '169.253.0.1',
    '2606:4700::1111',
    '2001:4860::8888',
  ]
  for (const address of [...permitted, '::ffff:8.8.8.8', '64:ff9b::8.8.8.8', '64:ff9b::808:808'])
    assert.ok(!isForbiddenAddress(address), address)
})

test('an IPv4 address gets the same verdict in each of its IPv6 forms', () => {
  fc.assert(
    fc.property(fc.ipV4(), (address) => {
      const forbidden = isForbiddenAddress(address)
      const [a = 0, b = 0, c = 0, d = 0] = address.split('.').map(Number)
      const groups = [a * 256 + b, c * 256 + d].map((group) => group.toString(16)).join(':')
      assert.equal(isForbiddenAddress(`::ffff:${groups}`), forbidden)
      assert.equal(isForbiddenAddress(`64:ff9b::${groups}`), forbidden)
      assert.ok(isForbiddenAddress(`2002:${groups}::`))
    }),
  )
})
