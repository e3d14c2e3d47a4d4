/** A procedure as an operation of /api/v1: the same code, policy and schemas, by another door. */
export interface RestOperation {
  method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'
  /**
   * Below /api/v1. Names in braces are the input's fields; what is left of it is the query of GET and DELETE, else the
   * body.
   */
  path: string
  /** One line, without a full stop. */
  summary: string
  description?: string
  /**
   * What it creates is there afterwards: answers 201 with this Location, whose names are the output's fields; null
   * where nobody can read it.
   */
  creates?: string | null
  /** Answers 204: the output says nothing that the status does not. */
  silent?: true
}

/** Why a procedure is none. */
export interface NoRestOperation {
  excluded: string
}
