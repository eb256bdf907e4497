import assert from 'node:assert/strict'
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parse, parseAllDocuments } from 'yaml'
import { ENVIRONMENT_HELP } from '../../src/cli/command.ts'
import { readConfig } from '../../src/config/read-config.ts'
import { limits } from '../../src/kernel/limits.ts'
import { root } from '../style/source-tree.ts'
import { test } from '../support/suite.ts'
import { problemsOf, problemsOfManifests } from './schemas.ts'

const deploy = join(root, 'deploy')
const textOf = (name: string) => readFileSync(join(deploy, name), 'utf8')

interface Service {
  readonly environment?: Readonly<Record<string, string>>
  readonly volumes?: readonly string[]
  readonly stop_grace_period?: string
  readonly ulimits?: { readonly nofile: number }
  readonly networks?: { readonly default: { readonly ipv4_address: string } }
}
interface Compose {
  readonly services: Readonly<Record<string, Service>>
  readonly volumes: Readonly<Record<string, unknown>>
}
test('the Compose files follow the Compose specification', () => {
  for (const name of ['compose.yaml', 'compose.single.yaml'])
    assert.deepEqual(problemsOf('compose', parse(textOf(name), { merge: true })), [], name)
  assert.notDeepEqual(problemsOf('compose', { services: { gateway: { imag: 'tollgate' } } }), [])
})

const compose = parse(textOf('compose.yaml'), { merge: true }) as Compose
const gateways = ['gateway-1', 'gateway-2'].map((name) => compose.services[name] ?? assert.fail(name))

const unit = textOf('tollgate.service')
const directive = (name: string) =>
  new RegExp(`^${name}=(.*)$`, 'm').exec(unit)?.[1] ?? assert.fail(`no ${name}`)

/** The longest stop of a gateway: streams finish, then calls settle. */
const stopSeconds = (limits.drainMs + limits.settleOnStopMs) / 1_000

test('every variable in the files of deploy is one of Tollgate’s', () => {
  const known = new Set(ENVIRONMENT_HELP.match(/\bTOLLGATE_[A-Z_]+\b/g))
  for (const { name } of readdirSync(deploy, { withFileTypes: true }).filter((entry) => entry.isFile())) {
    for (const variable of textOf(name).match(/\bTOLLGATE_[A-Z_]+\b/g) ?? [])
      assert.ok(known.has(variable), `deploy/${name} names ${variable}`)
  }
})

test('tollgate@.service differs from tollgate.service only in what each instance has', () => {
  const lines = (text: string) =>
    text
      .slice(text.indexOf('[Unit]'))
      .split('\n')
      .filter((line) => !line.startsWith('#') && line !== '')
  const template = lines(textOf('tollgate@.service'))
  const single = lines(unit)
  const instance = template.filter((line) => !single.includes(line))
  for (const line of instance) assert.match(line, /%i|^Environment=TOLLGATE_REUSE_PORT=true$/)
  const replaced = single.filter((line) => !template.includes(line))
  assert.equal(replaced.length, instance.filter((line) => !/REUSE_PORT|_CONFIG/.test(line)).length)
})

test('compose.yaml: the gateways share database, pepper and admin key, and have separate data', () => {
  const [first, second] = gateways
  assert.deepEqual(first?.environment, second?.environment)
  const own = gateways.map(({ volumes = [] }) => volumes.find((volume) => volume.endsWith(':/data')) ?? '')
  assert.equal(new Set(own).size, 2)
  for (const volume of own) assert.ok(Object.hasOwn(compose.volumes, volume.split(':')[0] ?? ''), volume)
})

test('compose.yaml: the configuration loads, and trusts only the proxy', () => {
  const [gateway = assert.fail('no gateway')] = gateways
  const mounted = gateway.volumes?.find((volume) =>
    volume.includes(gateway.environment?.['TOLLGATE_CONFIG'] ?? '-'),
  )
  const given = Object.entries(gateway.environment ?? {}).map(([name, text]) => [
    name,
    text.replaceAll(/\$\{\w+(:\?[^}]*|:-)\}/g, (_, otherwise) => (otherwise === ':-' ? '' : 'f'.repeat(64))),
  ])
  const environment = { ...Object.fromEntries(given), TOLLGATE_CONFIG: mounted?.split(':')[0] }
  const config = readConfig(environment, deploy)
  assert.deepEqual(config.trustedProxies, [compose.services['proxy']?.networks?.default.ipv4_address])
  assert.equal(config.databaseUrl?.reveal(), `postgres://tollgate:${'f'.repeat(64)}@postgres:5432/tollgate`)
})

test('compose.yaml: every mounted file exists, and the stop grace period is long enough', () => {
  for (const { volumes = [] } of Object.values(compose.services)) {
    for (const volume of volumes.filter((text) => text.startsWith('./')))
      assert.ok(existsSync(join(deploy, volume.split(':')[0] ?? '')), volume)
  }
  for (const { stop_grace_period: grace } of gateways)
    assert.ok(Number.parseInt(grace ?? '0', 10) > stopSeconds)
})

test('Dockerfile: installs this version on the Node.js of the tests, without a network, and does not run as root', () => {
  const text = textOf('Dockerfile')
  const { version, devDependencies } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as {
    version: string
    devDependencies: { node: string }
  }
  assert.deepEqual(text.match(/^FROM .+$/gm), [`FROM node:${devDependencies.node}-slim`])
  assert.deepEqual(new Set(text.match(/tollgate-.*?\.tgz/g)), new Set([`tollgate-${version}.tgz`]))
  assert.match(text, /^RUN npm install --global --offline /m)
  assert.match(text, /^USER node$/m)
  assert.equal(readFileSync(join(root, '.dockerignore'), 'utf8'), '*\n!tollgate-*.tgz\n')
})

test('kubernetes.yaml: every member is one of Kubernetes', () => {
  const manifests = parseAllDocuments(textOf('kubernetes.yaml')).map((each) => each.toJS())
  assert.equal(problemsOfManifests(manifests), '')
  assert.match(problemsOfManifests([{ ...manifests[0], stringDat: {} }]), /stringDat"' does not exist/)
})

interface Manifest {
  readonly kind: string
  readonly metadata: { readonly name: string }
  readonly spec: Readonly<Record<string, unknown>>
  readonly stringData: Readonly<Record<string, string>>
  readonly data: Readonly<Record<string, string>>
}
interface Container {
  readonly ports: readonly { name: string; containerPort: number }[]
  readonly env: readonly { name: string; value: string }[]
  readonly envFrom: readonly { secretRef: { name: string } }[]
  readonly volumeMounts: readonly { name: string; mountPath: string }[]
  readonly startupProbe: Probe
  readonly livenessProbe: Probe
  readonly readinessProbe: Probe
}
interface Probe {
  readonly httpGet: { readonly path: string; readonly port: string }
}

test('kubernetes.yaml: probes, ports, secrets and volumes match the gateway, and the configuration loads', () => {
  const manifests = parseAllDocuments(textOf('kubernetes.yaml')).map((each) => each.toJS() as Manifest)
  const named = (kind: string) => manifests.find((each) => each.kind === kind) ?? assert.fail(`no ${kind}`)
  const { template, volumeClaimTemplates } = named('StatefulSet').spec as {
    template: {
      metadata: { labels: unknown }
      spec: {
        enableServiceLinks?: boolean
        terminationGracePeriodSeconds: number
        containers: [Container]
        volumes: { name: string }[]
      }
    }
    volumeClaimTemplates: { metadata: { name: string } }[]
  }
  const [container] = template.spec.containers
  const config = readConfig({}, '/nonexistent')
  const { metrics } = JSON.parse(named('ConfigMap').data['tollgate.json'] ?? '{}') as {
    metrics: { port: number }
  }
  assert.deepEqual(container.ports, [
    { name: 'http', containerPort: config.port },
    { name: 'metrics', containerPort: metrics.port },
  ])
  for (const { httpGet } of [container.startupProbe, container.livenessProbe])
    assert.deepEqual(httpGet, { path: '/healthz', port: 'http' })
  assert.deepEqual(container.readinessProbe.httpGet, { path: '/readyz', port: 'http' })
  assert.ok(template.spec.terminationGracePeriodSeconds > stopSeconds)

  const volumes = [...template.spec.volumes, ...volumeClaimTemplates.map(({ metadata }) => metadata)]
  for (const { name } of container.volumeMounts)
    assert.ok(
      volumes.some((volume) => volume.name === name),
      name,
    )
  assert.ok(container.volumeMounts.some(({ mountPath }) => mountPath === '/data'))

  const service = named('Service').spec as { selector: unknown; ports: { targetPort: string }[] }
  assert.deepEqual(service.selector, template.metadata.labels)
  assert.equal(service.ports[0]?.targetPort, 'http')

  assert.deepEqual(container.envFrom, [{ secretRef: { name: named('Secret').metadata.name } }])
  const [file] = container.env
  assert.equal(file?.name, 'TOLLGATE_CONFIG')
  const mounted = Object.entries(named('ConfigMap').data)
  assert.deepEqual(
    mounted.map(([name]) => `/etc/tollgate/${name}`),
    [file?.value],
  )
  const folder = mkdtempSync(join(tmpdir(), 'tollgate-deploy-'))
  try {
    writeFileSync(join(folder, 'tollgate.json'), mounted[0]?.[1] ?? '')
    // With service links on, a pod gets these variables for each Service of its namespace.
    const prefix = named('Service').metadata.name.toUpperCase()
    const links =
      template.spec.enableServiceLinks === false
        ? {}
        : { [`${prefix}_SERVICE_HOST`]: '10.96.0.10', [`${prefix}_PORT`]: 'tcp://10.96.0.10:80' }
    const environment = { ...links, ...named('Secret').stringData }
    // A published admin key or pepper must not work.
    assert.throws(() => readConfig(environment, folder), /TOLLGATE_ADMIN_KEY[\s\S]*TOLLGATE_PEPPER/)
    const secret = '0'.repeat(64)
    const read = readConfig({ ...environment, TOLLGATE_PEPPER: secret, TOLLGATE_ADMIN_KEY: secret }, folder)
    assert.deepEqual(read.trustedProxies, [])
    assert.ok(read.databaseUrl !== null && read.pepper !== null && read.adminKey !== null)
  } finally {
    rmSync(folder, { recursive: true })
  }
})

test('tollgate.service: only its own folders are writable, and the configuration loads', () => {
  assert.equal(directive('DynamicUser'), 'yes')
  assert.equal(directive('ProtectSystem'), 'strict')
  assert.equal(directive('NoNewPrivileges'), 'yes')
  // V8 could not start with MemoryDenyWriteExecute.
  assert.doesNotMatch(unit, /^MemoryDenyWriteExecute=/m)
  const given = [...unit.matchAll(/^Environment=(\w+)=(.*)$/gm)].map(([, name = '', value = '']) => [
    name,
    value,
  ])
  const { dataDir } = readConfig(Object.fromEntries(given), '/nonexistent')
  assert.equal(dataDir, `/var/lib/${directive('StateDirectory')}`)
  assert.equal(Object.fromEntries(given)['NODE_COMPILE_CACHE'], `/var/cache/${directive('CacheDirectory')}`)
  assert.ok(Number(directive('LimitNOFILE')) >= 2 * limits.connectionsMax)
})
