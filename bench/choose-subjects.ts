import type { SubjectName } from './options.ts'
import { direct } from './subjects/direct.ts'
import { findNginx, nginx } from './subjects/nginx.ts'
import { pipe } from './subjects/pipe.ts'
import type { Subject } from './subjects/subject.ts'
import { type TollgateParts, tollgate } from './subjects/tollgate.ts'

/** The subjects that were asked for and are installed, with a note on each that is not installed. */
export function chooseSubjects(
  names: readonly SubjectName[],
  tollgates: readonly TollgateParts[],
): { subjects: Subject[]; notes: string[] } {
  const subjects: Subject[] = []
  const notes: string[] = []
  const program = findNginx()
  for (const name of names) {
    if (name === 'direct') subjects.push(direct)
    else if (name === 'pipe') subjects.push(pipe)
    else if (name === 'tollgate') subjects.push(...tollgates.map(tollgate))
    else if (name === 'nginx' && program !== null) subjects.push(nginx(program))
    else notes.push('nginx is not installed and was left out.')
  }
  return { subjects, notes }
}
