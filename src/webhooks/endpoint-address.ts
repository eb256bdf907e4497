import type { LookupAddress } from 'node:dns'
import { isIP } from 'node:net'
import { AddressRanges } from '../http/addresses.ts'
import type { EgressRules } from '../http/egress.ts'

/** Timeout for resolving a webhook's host when it is created. A name that is not resolved by then is accepted. */
const WEBHOOK_LOOKUP_MS = 3_000

/** All addresses of a host name. The list may be empty. Rejects if the name servers do not answer. */
export type ResolveHost = (host: string, signal: AbortSignal) => Promise<readonly LookupAddress[]>

export interface EndpointRules {
  readonly allowPrivate: boolean
  /** The way of deliveries through a proxy, which then refuses private hosts; null: they go directly. */
  readonly proxied?: EgressRules | null
  readonly resolveHost: ResolveHost
}

/**
 * Queries name servers directly: `dns.lookup` occupies one of the process's four threads, and lookups for upstream
 * would wait behind a dead name server. `dns.lookup` is used if private addresses are permitted, because it knows
 * `/etc/hosts` and local names.
 */
export function createResolveHost(allowPrivate: boolean): ResolveHost {
  return allowPrivate ? lookUpLocally : queryNameServers
}

async function lookUpLocally(host: string): Promise<readonly LookupAddress[]> {
  const { lookup } = await import('node:dns/promises')
  return await lookup(host, { all: true })
}

async function queryNameServers(host: string, signal: AbortSignal): Promise<readonly LookupAddress[]> {
  const { Resolver } = await import('node:dns/promises')
  const resolver = new Resolver({ timeout: 2_000, tries: 2 })
  const cancel = () => resolver.cancel()
  signal.addEventListener('abort', cancel)
  try {
    const [v4, v6] = await Promise.allSettled([resolver.resolve4(host), resolver.resolve6(host)])
    if (v4.status === 'rejected' && v6.status === 'rejected') {
      // A name that the servers do not know may be local, for example in `/etc/hosts`.
      if (v4.reason?.code === 'ENOTFOUND') return await lookUpLocally(host)
      throw v4.reason
    }
    return [
      ...(v4.status === 'fulfilled' ? v4.value : []).map((address) => ({ address, family: 4 })),
      ...(v6.status === 'fulfilled' ? v6.value : []).map((address) => ({ address, family: 6 })),
    ]
  } finally {
    signal.removeEventListener('abort', cancel)
  }
}

export function hostOf(url: URL): string {
  return url.hostname.replace(/^\[|\]$/g, '')
}

const LOCALHOST = /(?:^|\.)localhost\.?$/i

/** The addresses to which a webhook may be sent, resolved once. Rejects if there is no such address. */
export async function permittedAddresses(
  url: URL,
  { allowPrivate, resolveHost }: EndpointRules,
  signal: AbortSignal,
): Promise<readonly LookupAddress[]> {
  const host = hostOf(url)
  const family = isIP(host)
  const literal = LOCALHOST.test(host) ? { address: '127.0.0.1', family: 4 } : { address: host, family }
  const addresses = family === 0 && literal.address === host ? await resolveHost(host, signal) : [literal]
  const permitted = allowPrivate ? addresses : addresses.filter(({ address }) => !isForbiddenAddress(address))
  const [first] = addresses
  if (first === undefined) throw new Error(`${host} has no address`)
  if (permitted.length === 0) throw new ForbiddenAddress(host)
  return permitted
}

export class ForbiddenAddress extends Error {
  /** The message leaves out the address, which would reveal the network to anyone who may add a webhook. */
  constructor(host: string) {
    super(
      isIP(host) === 0
        ? `${host} has only private or reserved addresses`
        : `${host} is a private or reserved address`,
    )
  }
}

/** Returns the problem with the URL of a webhook, or null. Accepts a host name that does not resolve yet. */
export async function judgeEndpointUrl(text: string, rules: EndpointRules): Promise<string | null> {
  const url = URL.parse(text)
  if (url === null || !/^https?:$/.test(url.protocol)) return 'url must be an absolute https:// URL.'
  if (url.protocol === 'http:' && !rules.allowPrivate)
    return 'url must begin with https://. The operator can allow http with "webhooks": {"allow_private": true}.'
  if (url.username !== '' || url.password !== '')
    return 'url must not contain a user or password, because lists show the url.'
  if (url.hash !== '') return 'url must not have a fragment (#…), because HTTP does not send it.'
  try {
    await permittedAddresses(url, rules, AbortSignal.timeout(WEBHOOK_LOOKUP_MS))
  } catch (error) {
    if (!(error instanceof ForbiddenAddress)) return null
    return `url must lead to a public address: ${error.message}. The operator can allow private addresses with "webhooks": {"allow_private": true}.`
  }
  return null
}

/** A private address would make the gateway post into its own network. From the IANA special-purpose registries. */
const FORBIDDEN_IPV4 = [
  '0.0.0.0/8', // this network
  '10.0.0.0/8', // private
  '100.64.0.0/10', // carrier-grade NAT; metadata service of Alibaba Cloud
  '127.0.0.0/8', // loopback
  '168.63.129.16/32', // public address, but Azure's platform service inside Azure
  '169.254.0.0/16', // link-local; metadata service of most clouds
  '172.16.0.0/12', // private
  '192.0.0.0/24', // protocol assignments; metadata service of Oracle Cloud
  '192.0.2.0/24', // documentation
  '192.88.99.0/24', // 6to4 relays
  '192.168.0.0/16', // private
  '198.18.0.0/15', // benchmarks
  '198.51.100.0/24', // documentation
  '203.0.113.0/24', // documentation
  '224.0.0.0/4', // multicast
  '240.0.0.0/4', // reserved, broadcast
]

/** Global unicast and NAT64. Addresses in neither (loopback, unique-local, link-local, multicast …) are forbidden. */
const PERMITTED_IPV6 = ['2000::/3', '64:ff9b::/96']

/** Forbidden ranges of global unicast. 6to4 and Teredo are obsolete, and embed another address. */
const FORBIDDEN_IPV6 = [
  '2001::/23', // protocol assignments: Teredo, benchmarks, ORCHID
  '2001:db8::/32', // documentation
  '2002::/16', // 6to4
  '3fff::/20', // documentation
]

function behindNat64(range: string): string {
  const [address, bits] = range.split('/')
  return `64:ff9b::${address}/${96 + Number(bits)}`
}

const forbiddenIpv4 = new AddressRanges(FORBIDDEN_IPV4)
const permittedIpv6 = new AddressRanges(PERMITTED_IPV6)
const forbiddenIpv6 = new AddressRanges([...FORBIDDEN_IPV6, ...FORBIDDEN_IPV4.map(behindNat64)])
const mappedIpv4 = new AddressRanges(['::ffff:0:0/96'])

/** Whether a webhook must not be sent to this address. Text that is not an address is forbidden too. */
export function isForbiddenAddress(address: string): boolean {
  // An address with a zone is link-local.
  if (address.includes('%')) return true
  const family = isIP(address)
  if (family === 0) return true
  if (family === 4 || mappedIpv4.has(address)) return forbiddenIpv4.has(address)
  return !permittedIpv6.has(address) || forbiddenIpv6.has(address)
}
