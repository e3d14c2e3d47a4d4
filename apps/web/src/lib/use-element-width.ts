'use client'

import { type RefObject, useLayoutEffect, useRef, useState } from 'react'

/**
 * Returns the width of an element in CSS pixels, `initial` until it is measured; for a moment it is the old one when
 * the window becomes narrower. What is drawn with it must not have a width that the page would need: an `svg` is as
 * wide as its frame.
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
