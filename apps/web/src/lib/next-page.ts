/** For lists that page by key. */
export const nextPage = { getNextPageParam: (page: { nextCursor: string | null }) => page.nextCursor }
