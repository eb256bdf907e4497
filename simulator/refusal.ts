export type Surface = 'messages' | 'chat'

export interface RefusalDetails {
  readonly type?: string
  readonly code?: string
  readonly param?: string
}

/** A request that upstream would refuse. Each surface gives it its own JSON shape. */
export class Refusal extends Error {
  readonly status: number
  readonly details: RefusalDetails

  constructor(status: number, message: string, details: RefusalDetails = {}) {
    super(message)
    this.status = status
    this.details = details
  }
}

/** An error that is no refusal is a defect of the simulator, reported as upstream's 500. */
export function asRefusal(error: unknown): Refusal {
  return error instanceof Refusal ? error : new Refusal(500, `The simulator itself failed: ${String(error)}`)
}
