import { writeFileSync } from 'node:fs'
import { join } from 'node:path'

/**
 * A certificate for tests only, valid for a hundred years: self-signed, for localhost and 127.0.0.1.
 * openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 36500 -subj /CN=other.test \
 *   -addext subjectAltName=DNS:localhost,IP:127.0.0.1,DNS:other.test -keyout key.pem -out cert.pem
 */
export const localPair = {
  key: `-----BEGIN PRIVATE KEY-----
MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgvB/Z2Pg1vPU+kyHk
EvqJULbOM1p9+YWIabjajjj7W5KhRANCAAQ5nn5ybTrt+x2WUqhXTtn2zPNRR70U
byyTRxhaoZ37LWWZepXVE0Rip/edwmZUlWSbm37FQYp5aXiVt1ZVZ6rl
-----END PRIVATE KEY-----`,
  cert: `-----BEGIN CERTIFICATE-----
MIIBpDCCAUmgAwIBAgIUGh+Z80p+2rosSJG0GEDC5R86zScwCgYIKoZIzj0EAwIw
GDEWMBQGA1UEAwwNdXBzdHJlYW0udGVzdDAgFw0yNjExMTUxMTM2MTFaGA8yMTI2
MTAyMjExMzYxMVowGDEWMBQGA1UEAwwNdXBzdHJlYW0udGVzdDBZMBMGByqGSM49
AgEGCCqGSM49AwEHA0IABDmefnJtOu37HZZSqFdO2fbM81FHvRRvLJNHGFqhnfst
ZZl6ldUTRGKn953CZlSVZJubfsVBinlpeJW3VlVnquWjbzBtMB0GA1UdDgQWBBTT
+oINJ10oZXwfi44vLSGVjP6KCTAfBgNVHSMEGDAWgBTT+oINJ10oZXwfi44vLSGV
jP6KCTAPBgNVHRMBAf8EBTADAQH/MBoGA1UdEQQTMBGCCWxvY2FsaG9zdIcEfwAA
ATAKBggqhkjOPQQDAgNJADBGAiEA9bOmkigejvRrGqISKzlPSQcvUoUwVcN3apRu
UDQt4r4CIQDVM1KFdfyhh92aBfXM+E5hBibs2uqsffL/OdAUUj69ug==
-----END CERTIFICATE-----`,
}

export const otherPair = {
  key: `-----BEGIN PRIVATE KEY-----
MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQg7gB1nq7U1d4GvBXY
7Yu2jUkJsqx/l7+8+CeincEsphChRANCAAQGDEktkfPdQM42XBLZLTjODBYjFaUI
k6u0g7zgCiODWHl90bys0ZvpWYQYGwxhkrd5BEr0zuDwZ82ZaS/ssfoK
-----END PRIVATE KEY-----`,
  cert: `-----BEGIN CERTIFICATE-----
MIIBqTCCAU+gAwIBAgIUaU4Uny7HA/H7LjpzjSGK/slGavIwCgYIKoZIzj0EAwIw
FTETMBEGA1UEAwwKb3RoZXIudGVzdDAgFw0yNjExMTYxOTMyMDhaGA8yMTI2MTAy
MzE5MzIwOFowFTETMBEGA1UEAwwKb3RoZXIudGVzdDBZMBMGByqGSM49AgEGCCqG
SM49AwEHA0IABAYMSS2R891AzjZcEtktOM4MFiMVpQiTq7SDvOAKI4NYeX3RvKzR
m+lZhBgbDGGSt3kESvTO4PBnzZlpL+yx+gqjezB5MB0GA1UdDgQWBBTBy4DxN3Ds
7i2RCDFl8uXN9XCEujAfBgNVHSMEGDAWgBTBy4DxN3Ds7i2RCDFl8uXN9XCEujAP
BgNVHRMBAf8EBTADAQH/MCYGA1UdEQQfMB2CCWxvY2FsaG9zdIcEfwAAAYIKb3Ro
ZXIudGVzdDAKBggqhkjOPQQDAgNIADBFAiEA4wLisnDEKb9WxvsCmduKD6UaqMfx
2zv1EZmUSEUaOeACIGNeVgsBKMbNkqKxO9+Dt+e/rAN60TUqjHFZyKN5b9k5
-----END CERTIFICATE-----`,
}

/** Writes a pair of files for a gateway; returns the variables that name them. */
export function writePair(folder: string, { key, cert }: typeof localPair) {
  const files = { TOLLGATE_TLS_CERT: join(folder, 'cert.pem'), TOLLGATE_TLS_KEY: join(folder, 'key.pem') }
  writeFileSync(files.TOLLGATE_TLS_CERT, cert)
  writeFileSync(files.TOLLGATE_TLS_KEY, key, { mode: 0o600 })
  return files
}
