// Exits with 0 if the gateway in this container answers GET /healthz. With TLS, the certificate is not checked: it names another host.
import http from 'node:http'
import https from 'node:https'

const { TOLLGATE_PORT, TOLLGATE_TLS_CERT } = process.env
const { get } = TOLLGATE_TLS_CERT ? https : http
const where = {
  host: '127.0.0.1',
  port: TOLLGATE_PORT || '8787',
  path: '/healthz',
  rejectUnauthorized: false,
}
get({ ...where, timeout: 4_000 }, (response) => process.exit(response.statusCode === 200 ? 0 : 1))
  .on('timeout', () => process.exit(1))
  .on('error', () => process.exit(1))
