import { BlockList, isIP } from 'node:net'
import { type RawHeaders, tokensOf, valuesOf } from './raw-headers.ts'

/** Maximum number of addresses of `X-Forwarded-For` that are read, starting with the last. */
const FORWARDED_ADDRESSES_MAX = 32

/** A set of addresses and ranges. An IPv4-mapped IPv6 address is compared with the IPv4 ranges. */
export class AddressRanges {
  readonly #list = new BlockList()

  constructor(ranges: readonly string[]) {
    for (const range of ranges) {
      const [address = '', bits] = range.split('/')
      // Not `isIP`, whose IPv6 expression takes 8 ms to compile: the list itself rejects text that is not an address.
      const family = address.includes(':') ? 'ipv6' : 'ipv4'
      if (bits === undefined) this.#list.addAddress(address, family)
      else this.#list.addSubnet(address, Number(bits), family)
    }
  }

  has(address: string): boolean {
    return isIP(address) !== 0 && this.#list.check(address, isIP(address) === 6 ? 'ipv6' : 'ipv4')
  }
}

export class TrustedProxies extends AddressRanges {
  /** Whether a trusted proxy says that the client uses TLS. The first of several values counts. */
  isForwardedTls(peer: string, headers: RawHeaders): boolean {
    return this.has(plain(peer)) && tokensOf(headers, 'x-forwarded-proto')[0] === 'https'
  }

  /** The last address of `X-Forwarded-For` that is not a trusted proxy. Earlier ones are only the client's claims. */
  clientOf(peer: string, headers: RawHeaders): string {
    let client = plain(peer)
    if (!this.has(client)) return client
    const forwarded = valuesOf(headers, 'x-forwarded-for').join(',').split(',')
    for (const text of forwarded.slice(-FORWARDED_ADDRESSES_MAX).reverse()) {
      const address = addressIn(text)
      if (address === null) return client
      client = address
      if (!this.has(client)) return client
    }
    return client
  }
}

/** The network by which connections are counted: a /64 is one address, because an IPv6 customer has a whole /64. */
export function networkOf(address: string): string {
  const ip = plain(address)
  if (!ip.includes(':')) return ip
  const [head = '', tail] = ip.split('::')
  const groups = head === '' ? [] : head.split(':')
  if (tail !== undefined) {
    const afterGap = tail === '' ? [] : tail.split(':')
    while (groups.length + afterGap.length < 8) groups.push('0')
    groups.push(...afterGap)
  }
  return groups.slice(0, 4).join(':')
}

/** A server that listens on `::` sees IPv4 addresses as `::ffff:1.2.3.4`. */
function plain(address: string): string {
  const mapped = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i.exec(address)
  return mapped?.[1] ?? address
}

/** Without the port that some proxies add. An address with a zone is rejected. */
function addressIn(text: string): string | null {
  const [, bracketed, v4, bare = ''] =
    /^\s*(?:\[([^\]%]+)\](?::\d+)?|([\d.]+):\d+|([^\s%]+))\s*$/.exec(text) ?? []
  const address = bracketed ?? v4 ?? bare
  return isIP(address) === 0 ? null : plain(address)
}
