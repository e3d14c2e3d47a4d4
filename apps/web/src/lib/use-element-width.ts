'use client'

import { type RefObject, useLayoutEffect, useRef, useState } from 'react'

/**
 * Returns the width of an element in CSS pixels, `initial` until it is measured. It is outdated for a moment after the
 * window becomes narrower. A drawing must not force the page to that width: an `svg` is as wide as its frame.
 */
export function useElementWidth<T extends Element>(initial: number): [RefObject<T | null>, number] {
  const ref = useRef<T>(null)
  const [width, setWidth] = useState(initial)
  useLayoutEffect(() => {
    const element = ref.current
    if (!element) return
    const measure = () => setWidth(element.getBoundingClientRect().width)
    measure()
    const observer = new ResizeObserver(measure)
    observer.observe(element)
    return () => observer.disconnect()
  }, [])
  return [ref, width]
}
