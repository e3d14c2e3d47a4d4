'use client'

import { type RefObject, useLayoutEffect, useRef, useState } from 'react'

/**
 * The width of an element in CSS pixels, `initial` until it is measured; it is that of before for a moment when the
 * window becomes narrower. What is drawn by it has no width of its own that a page would have to be as wide as: an
 * `svg` is as wide as its frame.
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
