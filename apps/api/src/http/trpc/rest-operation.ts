/** A procedure as an operation of /api/v1: the same code, policy and schemas, by another door. */
export interface RestOperation {
  method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'
  /**
   * Path below /api/v1. Names in braces are the input's fields; the rest of the input is the query of GET and DELETE,
   * otherwise the body.
   */
  path: string
  /** One line, without a full stop. */
  summary: string
  description?: string
  /**
   * For an operation that creates an object: answers 201 with this Location, whose names are the output's fields; null
   * if nobody can read the object.
   */
  creates?: string | null
  /** Answers 204: the output says nothing that the status does not. */
  silent?: true
}

/** Why a procedure is none. */
export interface NoRestOperation {
  excluded: string
}
