export { activeStates, askStore, edgesHolding, type StoreOrder, shownUrl, whyNoWork } from './ask-store.ts'
export { type EdgeImageRow, type ImagesEdge, listEdgeImages, readImagesEdge, requireAdoptable } from './edge-images.ts'
