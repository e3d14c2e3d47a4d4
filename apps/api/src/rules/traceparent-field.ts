import { z } from 'zod'
import { parseTraceparent } from './tracer.ts'

const versionZero = /^00-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}$/

/** The span of a caller that starts devices. It is kept, and stands in files: only the exact form is accepted. */
export const traceparentField = z
  .string()
  .refine(
    (text) => versionZero.test(text) && parseTraceparent(text) !== null,
    'A traceparent has the form 00-TRACE-SPAN-FLAGS: 32, 16 and 2 lower-case hexadecimal digits, trace and span not 0.',
  )
  .optional()
  .meta({
    description: "The caller's span as W3C Trace Context writes it; the traces of the boots that follow link to it.",
    examples: ['00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01'],
  })
