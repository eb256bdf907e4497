import { VERSION } from '../kernel/version.ts'

export const HELP = `tollgate ${VERSION} - a transparent billing gateway for model APIs

Usage
  tollgate [serve]                    serve; with no provider configured, from the built-in simulator
  tollgate keys create|list|show|update|revoke|rotate
                                      API keys and their limits
  tollgate usage                      what was used and what it cost, by day, model or key
  tollgate requests [--follow]        the log of calls: look, export, or watch them as they end
  tollgate credits add|back           add prepaid credit, or give back what calls cost
  tollgate admin-key create|list|revoke
                                      the keys that manage the gateway
  tollgate prices show|check|import   look at the price book, check an overlay, make one from a public list
  tollgate audit                      derive every balance and every bill again from the records, and compare
  tollgate rerate --from <date>       price calls again after a price was corrected
  tollgate migrate-store              move the books from SQLite into PostgreSQL, for more than one node
  tollgate doctor                     check configuration, store, disk, upstreams, prices; say what to do
  tollgate <command> --help           the options and examples of a command
  tollgate --help | --version

Environment
  TOLLGATE_HOST           address to listen on                            127.0.0.1
  TOLLGATE_PORT           port to listen on, 0 for any                    8787
  TOLLGATE_DATA_DIR       database, pepper, first admin key               ./data
  TOLLGATE_DATABASE_URL   postgres://… for many nodes on one PostgreSQL   SQLite in the data dir
  TOLLGATE_CONFIG         JSON file with the other settings               ./tollgate.json, if there
  TOLLGATE_ADMIN_KEY      an admin key of your own, 32 characters or more
  TOLLGATE_MESSAGES_URL   upstream of the Messages surface                https://api.anthropic.com
  TOLLGATE_MESSAGES_KEY   its key; falls back to ANTHROPIC_API_KEY
  TOLLGATE_CHAT_URL       upstream of the Chat/Responses surface          https://api.openai.com/v1
  TOLLGATE_CHAT_KEY       its key; falls back to OPENAI_API_KEY
  TOLLGATE_DISCOUNT       off list prices, as a fraction such as 0.15     0
  TOLLGATE_PRICES         price overlay file; SIGHUP reads it again
  TOLLGATE_PEPPER         secret the stored key digests are made with     <data dir>/pepper
  TOLLGATE_PREFIX         beginning of keys and of the x-…- headers       svc
  TOLLGATE_LOG_LEVEL      silent fatal error warn info debug trace        info
                          on a terminal, from info on, a line for each call

Examples
  npm start                                            try it, with the simulator
  ANTHROPIC_API_KEY=sk-ant-… tollgate serve            the Messages surface for real
  TOLLGATE_CHAT_URL=http://127.0.0.1:11434/v1 tollgate a local model server, no key

Exit codes
  0 done   1 failed   2 the command line or the configuration is wrong
`
