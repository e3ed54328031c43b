/* Threads that add; with an argument, one that waits to be looked at. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <unistd.h>

static void *work(void *argument)
{
    atomic_int *count = argument;
    for (int i = 0; i < 1000; i++)
        atomic_fetch_add(count, 1);
    return NULL;
}

int main(int argc, char **argv)
{
    pthread_t threads[4];
    atomic_int count = 0;

    (void)argv;
    if (argc > 1)
        pause();
    for (int i = 0; i < 4; i++)
        pthread_create(&threads[i], NULL, work, &count);
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    printf("4 threads, %d additions\n", (int)count);
    return count == 4000 ? 0 : 1;
}
