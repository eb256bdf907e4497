// Rotates usable keys older than 90 days. The old key works for another day, so that its clients can change over. Prints `name,key`.
//   node rotate-old-keys.mjs [days]
const { TOLLGATE_URL, TOLLGATE_ADMIN_KEY } = process.env
const days = Number(process.argv[2] ?? 90)
const before = new Date(Date.now() - days * 86_400_000).toISOString()

async function call(method, path, body) {
  const response = await fetch(TOLLGATE_URL + path, {
    method,
    headers: { authorization: `Bearer ${TOLLGATE_ADMIN_KEY}`, 'content-type': 'application/json' },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  })
  const answer = await response.json()
  if (!response.ok) throw new Error(`${method} ${path}: ${answer.error.message}`)
  return answer
}

let after
const old = []
do {
  const page = await call('GET', `/v1/keys?status=usable&limit=1000${after ? `&after=${after}` : ''}`)
  // A key that expires was rotated already, or is meant to end.
  old.push(...page.data.filter((key) => key.created_at < before && key.expires_at === null))
  after = page.next
} while (after)

for (const { id, name } of old) {
  const { key } = await call('POST', `/v1/keys/${id}/rotate`, { old_expires_in_seconds: 86_400 })
  console.log(`${name},${key}`)
}
