import { CopyLine } from '../../components/copy-line'
import { Notice } from '../../components/field'

/** Shown once; each of them signs in once in place of a code. */
export function BackupCodes({ codes }: { codes: string[] }) {
  return (
    <>
      <Notice tone="live">
        Store these backup codes where you can reach them without your authenticator. They are shown only once. Each
        code works once.
      </Notice>
      <CopyLine label="Backup codes" text={codes.join(' ')} />
    </>
  )
}
