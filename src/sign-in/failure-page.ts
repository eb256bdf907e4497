import { type Exchange, sendWhole } from '../http/exchange.ts'

/** A failed sign-in, as a person reads it: what happened, and what to do. */
export interface SignInFailure {
  readonly status: number
  readonly happened: string
  readonly remedy: string
}

const SAFE_HEADERS = Object.entries({
  'content-security-policy':
    "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
  'referrer-policy': 'no-referrer',
  'x-content-type-options': 'nosniff',
  'cache-control': 'no-store',
}).flat()

/** A plain page. It contains no text from outside, so nothing needs to be escaped. */
export function sendFailure(
  exchange: Exchange,
  failure: SignInFailure,
  headers: readonly string[] = [],
): void {
  const { status, happened, remedy } = failure
  const body = Buffer.from(`<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>Not signed in</title></head>
<body>
<h1>Not signed in</h1>
<p>${happened}</p>
<p>${remedy}</p>
<p>Request ${exchange.requestId}</p>
<p><a href="/dashboard">Back to the dashboard</a></p>
</body>
</html>
`)
  const described = ['content-type', 'text/html; charset=utf-8', 'content-length', String(body.length)]
  sendWhole(exchange, { status, headers: [...described, ...SAFE_HEADERS, ...headers], body })
}
