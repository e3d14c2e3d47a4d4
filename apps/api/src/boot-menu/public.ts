export { chooseMenuOfCollection, chooseMenuOfDevice } from './choose-menu.ts'
export { deviceMenuOf, deviceMenuSelect } from './rows.ts'
