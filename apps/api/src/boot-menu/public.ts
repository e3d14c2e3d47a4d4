/** What other nouns may import, apart from the schemas. */
export { chooseMenuOfCollection, chooseMenuOfDevice } from './choose-menu.ts'
export { deviceMenuOf, deviceMenuSelect } from './rows.ts'
