export interface BadBody {
  readonly what: string
  readonly text: string
  readonly param: string | null
  readonly message: RegExp
}

const long = (chars: number) => JSON.stringify('x'.repeat(chars))
const models = (count: number) => JSON.stringify(Array.from({ length: count }, (_, i) => `m${i}`))

/** Wrong fields of a key as they are written, wrong for creation and for an edit alike. */
const fields: readonly [what: string, field: string, param: string, message: RegExp][] = [
  ['an empty name', '"name":""', 'name', /must not be empty/],
  ['a name of 121 characters', `"name":${long(121)}`, 'name', /at most 120/],
  ['a name of 121 emoji', `"name":${JSON.stringify('🔑'.repeat(121))}`, 'name', /at most 120/],
  ['a name of blanks', '"name":" \\u00a0\\u3000"', 'name', /must not be blank/],
  ['a name that is a number', '"name":7', 'name', /must be a text/],
  ['a name that is null', '"name":null', 'name', /must be a text/],
  ['a name with a line end', '"name":"a\\nb"', 'name', /control characters/],
  ['a name with a C1 control character', '"name":"a\\u0085b"', 'name', /control characters/],
  ['a name with half a character', '"name":"a\\ud83d"', 'name', /well-formed/],
  ['a negative budget', '"monthly_budget_usd":-0.01', 'monthly_budget_usd', /from 0 to 1000000000/],
  [
    'a budget beyond a billion',
    '"monthly_budget_usd":1000000000.000000001',
    'monthly_budget_usd',
    /from 0 to/,
  ],
  ['a budget with 10 decimals', '"monthly_budget_usd":0.1234567891', 'monthly_budget_usd', /9 decimals/],
  ['a budget of 1e400', '"monthly_budget_usd":1e400', 'monthly_budget_usd', /must be a number/],
  ['a budget that is a text', '"monthly_budget_usd":"5"', 'monthly_budget_usd', /must be a number/],
  ['a budget that is true', '"monthly_budget_usd":true', 'monthly_budget_usd', /must be a number/],
  ['an empty list of models', '"allowed_models":[]', 'allowed_models', /empty list/],
  ['models that are a text', '"allowed_models":"m"', 'allowed_models', /a list of 1 to 200/],
  ['models that are an object', '"allowed_models":{"0":"m"}', 'allowed_models', /a list of 1 to 200/],
  ['201 models', `"allowed_models":${models(201)}`, 'allowed_models', /at most 200/],
  ['a model that is there twice', '"allowed_models":["m","n","m"]', 'allowed_models', /twice/],
  ['a model that is no text', '"allowed_models":["m",null]', 'allowed_models.1', /must be a text/],
  ['a model with an empty name', '"allowed_models":["m",""]', 'allowed_models.1', /must not be empty/],
  ['a model of 257 characters', `"allowed_models":[${long(257)}]`, 'allowed_models.0', /at most 256/],
  [
    'a model of 129 emoji, which are 258 units of UTF-16',
    `"allowed_models":[${JSON.stringify('🔑'.repeat(129))}]`,
    'allowed_models.0',
    /at most 256 UTF-16/,
  ],
  ['log_requests that is a text', '"log_requests":"true"', 'log_requests', /true or false/],
  ['log_requests that is null', '"log_requests":null', 'log_requests', /true or false/],
  ['log_requests that is 1', '"log_requests":1', 'log_requests', /true or false/],
  ['an expiry that is a number', '"expires_at":4102444800', 'expires_at', /UTC timestamp/],
  ['an expiry that is a date', '"expires_at":"2100-01-01"', 'expires_at', /UTC timestamp/],
  ['an expiry without seconds', '"expires_at":"2100-01-01T00:00Z"', 'expires_at', /UTC timestamp/],
  ['an expiry without a zone', '"expires_at":"2100-01-01T00:00:00"', 'expires_at', /UTC timestamp/],
  ['an expiry in another zone', '"expires_at":"2100-01-01T00:00:00+01:00"', 'expires_at', /UTC timestamp/],
  ['an expiry in +0000', '"expires_at":"2100-01-01T00:00:00+0000"', 'expires_at', /UTC timestamp/],
  ['an expiry in +00', '"expires_at":"2100-01-01T00:00:00+00"', 'expires_at', /UTC timestamp/],
  ['an expiry in Z and +00:00', '"expires_at":"2100-01-01T00:00:00Z+00:00"', 'expires_at', /UTC timestamp/],
  ['an expiry in small letters', '"expires_at":"2100-01-01t00:00:00z"', 'expires_at', /UTC timestamp/],
  ['an expiry on 30 February', '"expires_at":"2100-02-30T00:00:00Z"', 'expires_at', /UTC timestamp/],
  [
    'an expiry on 29 February of 2100, no leap year',
    '"expires_at":"2100-02-29T00:00:00Z"',
    'expires_at',
    /UTC timestamp/,
  ],
  ['an expiry at 24:00', '"expires_at":"2100-01-01T24:00:00Z"', 'expires_at', /UTC timestamp/],
  ['an expiry in a leap second', '"expires_at":"2100-06-30T23:59:60Z"', 'expires_at', /UTC timestamp/],
  ['an expiry in the past', '"expires_at":"2020-01-01T00:00:00Z"', 'expires_at', /in the future/],
  ['a field that does not exist', '"monthly_budget":5', 'monthly_budget', /not a field/],
  ['a field of the answer', '"status":"usable"', 'status', /not a field/],
  [
    'a budget that is taken back behind itself',
    '"monthly_budget_usd":5,"monthly_budget_usd":null',
    'monthly_budget_usd',
    /^monthly_budget_usd is there twice\.$/,
  ],
  ['a field twice with the same value', '"log_requests":true,"log_requests":true', 'log_requests', /twice/],
  [
    'a field twice, once with an escape in its name',
    '"monthly_budget_usd":5,"monthly\\u005fbudget_usd":null',
    'monthly_budget_usd',
    /^monthly_budget_usd is there twice\.$/,
  ],
  [
    'a field twice, once nested 600 deep',
    `"log_requests":${'['.repeat(600)}${']'.repeat(600)},"log_requests":true`,
    'log_requests',
    /twice/,
  ],
  ['__proto__ twice', '"__proto__":{},"__proto__":{}', '__proto__', /twice/],
  ['a field that does not exist twice', '"x":1,"x":2', 'x', /twice/],
  ['money that does not exist', '"budget_usd":5', 'budget_usd', /not a field/],
  ['__proto__', '"__proto__":{}', '__proto__', /not a field/],
  ['constructor', '"constructor":{}', 'constructor', /not a field/],
]

/** Bodies that are not even fields. */
const shapes: readonly BadBody[] = [
  { what: 'a body that is no JSON', text: '{', param: null, message: /not JSON/ },
  { what: 'a body that is a list', text: '[]', param: null, message: /JSON object/ },
  { what: 'a body that is null', text: 'null', param: null, message: /JSON object/ },
  { what: 'a body that is a text', text: '"name"', param: null, message: /JSON object/ },
  { what: 'a form', text: 'name=x', param: null, message: /not JSON/ },
  { what: 'a body nested 30,000 deep', text: '['.repeat(30_000), param: null, message: /not JSON/ },
  {
    what: 'a whole body nested 30,000 deep',
    text: `${'['.repeat(30_000)}${']'.repeat(30_000)}`,
    param: null,
    message: /not JSON|JSON object/,
  },
]

/** `others` are the fields that the body needs besides, so that it has only the one fault. */
export function badKeyBodies(others: string): readonly BadBody[] {
  const faulty = fields.map(([what, field, param, message]) => {
    // A second member of the same name would replace the first.
    const rest = field.startsWith('"name"') || others === '' ? '' : `,${others}`
    return { what, text: `{${field}${rest}}`, param, message }
  })
  return [...shapes, ...faulty]
}
