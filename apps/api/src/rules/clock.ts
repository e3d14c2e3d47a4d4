/** The API's wall clock, as a value so that services and their tests agree on the time. */
export type Clock = () => Date

export const systemClock: Clock = () => new Date()
