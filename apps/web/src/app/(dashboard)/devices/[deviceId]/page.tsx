import { DevicePage } from '../../../../features/devices/device-page'
import { routePage } from '../../../route-page'

export default routePage(DevicePage)
