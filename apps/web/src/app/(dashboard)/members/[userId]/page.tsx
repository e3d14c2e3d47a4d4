import { MemberPage } from '../../../../features/people/member-page'

export default async function Page({ params }: { params: Promise<{ userId: string }> }) {
  const { userId } = await params
  return <MemberPage userId={userId} />
}
