import { DevicePage } from '../../../../features/devices/device-page'

export default async function Page({ params }: { params: Promise<{ deviceId: string }> }) {
  const { deviceId } = await params
  return <DevicePage deviceId={deviceId} />
}
