'use client'

import { useEffect, useState } from 'react'

/**
 * Keeps the screen on while `isWanted`, where the browser allows it: over HTTPS or on this machine, in a visible tab. A
 * browser takes the lock back when the tab is hidden, so it is requested again when it is shown.
 */
export function useAwakeScreen(isWanted: boolean): { isAwake: boolean } {
  const [isAwake, setAwake] = useState(false)
  useEffect(() => {
    if (!isWanted || !('wakeLock' in navigator)) return
    let lock: WakeLockSentinel | null = null
    let isOver = false
    const request = async () => {
      if (document.visibilityState !== 'visible' || (lock && !lock.released)) return
      try {
        const taken = await navigator.wakeLock.request('screen')
        if (isOver) return void taken.release()
        lock = taken
        lock.addEventListener('release', () => setAwake(false))
        setAwake(true)
      } catch {
        // A browser that saves power refuses it.
        setAwake(false)
      }
    }
    void request()
    document.addEventListener('visibilitychange', request)
    return () => {
      isOver = true
      document.removeEventListener('visibilitychange', request)
      void lock?.release()
      setAwake(false)
    }
  }, [isWanted])
  return { isAwake }
}
