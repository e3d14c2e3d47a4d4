import { MemberPage } from '../../../../features/people/member-page'
import { routePage } from '../../../route-page'

export default routePage(MemberPage)
