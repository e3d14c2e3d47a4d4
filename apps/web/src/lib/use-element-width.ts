'use client'

import { type RefObject, useLayoutEffect, useRef, useState } from 'react'

/** The width of an element in CSS pixels, `initial` until it is measured. */
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
