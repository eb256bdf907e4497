import { relative } from 'node:path'
import { checkOutRevision } from './check-out-revision.ts'
import { chooseSubjects } from './choose-subjects.ts'
import { chooseCores, moveTo } from './cores.ts'
import { accountsGroup } from './groups/accounts.ts'
import type { Group, Plan } from './groups/group.ts'
import { fewKeysGroup, keysGroup } from './groups/keys.ts'
import { peopleGroup } from './groups/people.ts'
import { requestGroups } from './groups/requests.ts'
import { soakGroup } from './groups/soak.ts'
import { startGroup } from './groups/start.ts'
import { storesGroups } from './groups/stores.ts'
import { onePortGroup, streamGroups } from './groups/streams.ts'
import { usageGroup } from './groups/usage.ts'
import { describeMachine, revisionHere, root } from './machine.ts'
import { HELP, type Options, OptionsError, readOptions } from './options.ts'
import { profileRooms } from './profile.ts'
import type { Results } from './report/results.ts'
import { judgeTargets } from './report/targets.ts'
import { writeReport } from './report/write-report.ts'
import { runAbba } from './run-abba.ts'
import { runGroups } from './run-groups.ts'
import { installUndo } from './scratch.ts'
import { FULL, QUICK } from './sizes.ts'

/** The benchmark: options → subjects → groups in turns → report. Run: npm run bench -- --help */

async function main(options: Options): Promise<void> {
  const cores = chooseCores()
  const other = options.compare === null ? null : checkOutRevision(options.compare)
  const tollgates = [
    ...(other === null ? [] : [{ name: `tollgate@${other.name}`, root: other.root }]),
    { name: 'tollgate', root },
  ]
  const { subjects, notes } = chooseSubjects(options.subjects, tollgates)
  const plan: Plan = {
    cores,
    sizes: options.quick ? QUICK : FULL,
    warmUpSeconds: options.warmUpSeconds,
    seconds: options.seconds,
    soakMinutes: options.soakMinutes ?? 0,
    subjects,
    tollgates: options.subjects.includes('tollgate') ? tollgates : [],
  }
  if (options.abba !== null || options.profile !== null) {
    moveTo(cores.load)
    if (options.abba !== null) await runAbba(plan, options.abba)
    if (options.profile !== null) await profileRooms(plan, options.profile)
    return
  }
  const groups = chosen(allGroups(plan, options), options.only)
  if (options.list) {
    for (const name of new Set(groups.flatMap((group) => group.cases.map((one) => one.workload)))) {
      process.stdout.write(`${name}\n`)
    }
    return
  }
  if (groups.length === 0) throw new OptionsError('no workload has such a name; see --list')
  moveTo(cores.load)

  const heading: Omit<Results, 'workloads' | 'measurements' | 'notes'> = {
    date: new Date().toISOString(),
    revision: revisionHere(),
    comparedTo: other?.name ?? null,
    quick: options.quick,
    machine: describeMachine(),
    settings: {
      rounds: options.rounds,
      'seconds each': options.seconds,
      'warm-up seconds': options.warmUpSeconds,
    },
    sizes: plan.sizes,
  }
  const firstNotes = [...(cores.note === null ? [] : [cores.note]), ...notes]
  let written: readonly string[] = []
  const last = await runGroups(groups, options.rounds, (progress) => {
    const results = { ...heading, ...progress, notes: [...firstNotes, ...progress.notes] }
    // The report is written after every group, so that a run that is cut short has reported its groups so far.
    written = writeReport(results, options.out)
    return results
  })
  if (last.comparedTo === null) showTargets(last)
  process.stdout.write(
    `\nWritten:\n${written.map((file) => `  ${relative(process.cwd(), file)}`).join('\n')}\n`,
  )
}

function allGroups(plan: Plan, options: Options): Group[] {
  return [
    ...requestGroups(plan),
    ...streamGroups(plan),
    ...(plan.tollgates.length === 0
      ? []
      : [
          fewKeysGroup(plan),
          keysGroup(plan),
          accountsGroup(plan),
          peopleGroup(plan),
          usageGroup(plan),
          startGroup(plan),
          ...storesGroups(plan),
          onePortGroup(plan),
        ]),
    ...(options.soakMinutes === null ? [] : [soakGroup(plan)]),
  ]
}

/** The groups with only the workloads that were asked for. */
function chosen(groups: readonly Group[], only: readonly string[] | null): Group[] {
  if (only === null) return [...groups]
  return groups
    .map((group) => ({
      ...group,
      cases: group.cases.filter(({ workload }) => only.some((start) => workload.startsWith(start))),
    }))
    .filter((group) => group.cases.length > 0)
}

function showTargets(results: Results): void {
  const judged = judgeTargets(results).filter(({ met }) => met !== null)
  if (judged.length === 0) return
  process.stdout.write('\nTargets\n')
  for (const { target, measured, met } of judged) {
    process.stdout.write(`  ${met === true ? 'met    ' : 'NOT MET'}  ${target}: ${measured}\n`)
  }
}

installUndo()
try {
  const options = readOptions(process.argv.slice(2))
  if (options.help) process.stdout.write(HELP)
  else await main(options)
  process.exit()
} catch (error) {
  const expected = error instanceof OptionsError
  process.stderr.write(`bench: ${expected ? `${error.message}. See --help.` : (error as Error).stack}\n`)
  process.exit(expected ? 2 : 1)
}
