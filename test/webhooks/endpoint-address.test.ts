import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  createResolveHost,
  type EndpointRules,
  judgeEndpointUrl,
} from '../../src/webhooks/endpoint-address.ts'

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

test('a host name that does not resolve is accepted: it may do so later', async () => {
  assert.equal(await judge('https://not-yet.example/hook'), null)
})

test('a name that resolves to a private address is refused, also if only one of its addresses is', async () => {
  for (const host of ['private.example', 'both.example'])
    assert.match(
      (await judge(`https://${host}/`)) ?? '',
      /^url must lead to a public address: .*\.example \(/,
    )
})

test('every spelling of a private address is refused', async () => {
  const hosts = [
    '127.0.0.1',
    '2130706433',
    '0x7f.1',
    '0177.0.0.1',
    '127.1',
    '127.0.0.1.',
    '0',
    '%31%32%37.0.0.1',
  ]
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
    assert.match((await judge(`https://${host}/`)) ?? '', /is a private or reserved address/, host)
})

test('http, another scheme, credentials, a fragment and what is no URL are refused, with the fix', async () => {
  assert.match((await judge('http://public.example/')) ?? '', /^url must be https; .*allow_private/)
  for (const url of ['ftp://public.example/', 'public.example', '/hook', 'https://', 'javascript:alert(1)'])
    assert.match((await judge(url)) ?? '', /^url must be an absolute https:\/\/ URL\.$/, url)
  for (const url of ['https://user@public.example/', 'https://user:pass@public.example/'])
    assert.match((await judge(url)) ?? '', /no user and no password/)
  assert.match((await judge('https://public.example/#part')) ?? '', /no fragment/)
})

test('with webhooks.allow_private, http and private addresses are accepted, and nothing else that is wrong', async () => {
  for (const url of ['http://127.0.0.1:9/hook', 'http://private.example/', 'https://[::1]/'])
    assert.equal(await judge(url, true), null, url)
  assert.notEqual(await judge('https://user@private.example/', true), null)
})

test('names of this machine are known where private addresses are permitted', async () => {
  const signal = new AbortController().signal
  const [first] = await createResolveHost(true)('localhost', signal)
  assert.match(first?.address ?? '', /^(127\.0\.0\.1|::1)$/)
})
