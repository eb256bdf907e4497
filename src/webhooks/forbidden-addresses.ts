import { isIP } from 'node:net'
import { AddressRanges } from '../http/addresses.ts'

/**
 * Addresses that webhooks do not go to: an endpoint is named by an admin key, and with a private address it could make
 * the gateway post into the network that it stands in. From the IANA special-purpose registries.
 */
const FORBIDDEN_IPV4 = [
  '0.0.0.0/8', // this network
  '10.0.0.0/8', // private
  '100.64.0.0/10', // carrier-grade NAT; metadata of Alibaba Cloud
  '127.0.0.0/8', // loopback
  '168.63.129.16/32', // a public address that is the platform's own inside Azure
  '169.254.0.0/16', // link-local; metadata of nearly all clouds
  '172.16.0.0/12', // private
  '192.0.0.0/24', // protocol assignments; metadata of Oracle Cloud
  '192.0.2.0/24', // documentation
  '192.88.99.0/24', // 6to4 relays
  '192.168.0.0/16', // private
  '198.18.0.0/15', // benchmarks
  '198.51.100.0/24', // documentation
  '203.0.113.0/24', // documentation
  '224.0.0.0/4', // multicast
  '240.0.0.0/4', // reserved, broadcast
]

/** Global unicast and NAT64. What is in neither (loopback, unique-local, link-local, multicast …) is forbidden. */
const PERMITTED_IPV6 = ['2000::/3', '64:ff9b::/96']

/** Of global unicast. 6to4 and Teredo have another address in them and carry nothing any more. */
const FORBIDDEN_IPV6 = [
  '2001::/23', // protocol assignments: Teredo, benchmarks, ORCHID
  '2001:db8::/32', // documentation
  '2002::/16', // 6to4
  '3fff::/20', // documentation
]

/** NAT64 leads to the IPv4 address in its last four bytes. */
function behindNat64(range: string): string {
  const [address, bits] = range.split('/')
  return `64:ff9b::${address}/${96 + Number(bits)}`
}

const forbiddenIpv4 = new AddressRanges(FORBIDDEN_IPV4)
const permittedIpv6 = new AddressRanges(PERMITTED_IPV6)
const forbiddenIpv6 = new AddressRanges([...FORBIDDEN_IPV6, ...FORBIDDEN_IPV4.map(behindNat64)])
const mappedIpv4 = new AddressRanges(['::ffff:0:0/96'])

/** Whether a webhook may not be sent there. What is no address is forbidden too. */
export function isForbiddenAddress(address: string): boolean {
  // A zone belongs to link-local addresses.
  if (address.includes('%')) return true
  const family = isIP(address)
  if (family === 0) return true
  if (family === 4 || mappedIpv4.has(address)) return forbiddenIpv4.has(address)
  return !permittedIpv6.has(address) || forbiddenIpv6.has(address)
}
