import { BootPage } from '../../../../features/boots/boot-page'
import { readBoot } from '../../../../features/boots/read-boot'
import { FirstData } from '../../../../features/first-data/first-data'
import { readFirstData } from '../../../../features/first-data/read-first-data'

export default async function Page({ params }: { params: Promise<{ bootId: string }> }) {
  const { bootId } = await params
  return (
    <FirstData data={await readFirstData((reader) => readBoot(reader, bootId))}>
      <BootPage bootId={bootId} />
    </FirstData>
  )
}
