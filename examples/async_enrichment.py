"""Asynchronous I/O: an HTTP service is asked for the customer of each order, with many concurrent requests.

The service runs in this program; at first it answers that it is busy, so requests are retried."""

import asyncio
import json
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

from millstream.common import Time, Types
from millstream.datastream import AsyncDataStream, AsyncFunction, AsyncRetryStrategy, StreamExecutionEnvironment

CUSTOMERS = {"ada": "London", "bob": "Oslo"}
ORDERS = [("ada", "tea"), ("bob", "jam"), ("ada", "salt"), ("eve", "rice")]
asked_before: set[str] = set()


class Service(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        name = self.path.strip("/")
        busy = name not in asked_before
        asked_before.add(name)
        self.send_response(503 if busy else 200)
        self.end_headers()
        self.wfile.write(json.dumps(CUSTOMERS.get(name)).encode())

    def log_message(self, *_: object) -> None:
        """Log nothing."""


class LookUp(AsyncFunction[tuple[str, str], str]):
    def __init__(self, port: int) -> None:
        self.port = port

    async def async_invoke(self, value: tuple[str, str]) -> list[str]:
        customer, goods = value
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        writer.write(f"GET /{customer} HTTP/1.0\r\n\r\n".encode())
        head, _, body = (await reader.read()).partition(b"\r\n\r\n")
        writer.close()
        if b" 200 " not in head.splitlines()[0]:
            raise ConnectionError("the service is busy")
        return [f"{goods} to {customer} in {json.loads(body) or 'an unknown place'}"]

    def timeout(self, value: tuple[str, str]) -> list[str]:
        return [f"{value[1]} to {value[0]}, who could not be looked up"]


server = ThreadingHTTPServer(("127.0.0.1", 0), Service)
Thread(target=server.serve_forever, daemon=True).start()

env = StreamExecutionEnvironment.get_execution_environment()
again = AsyncRetryStrategy.fixed_delay(5, 20, None, lambda error: isinstance(error, ConnectionError))
orders = env.from_collection(ORDERS, Types.TUPLE([Types.STRING(), Types.STRING()]))
AsyncDataStream.unordered_wait_with_retry(
    orders, LookUp(server.server_port), Time.seconds(10), again, capacity=100, output_type=Types.STRING()
).print()
env.execute("async enrichment")
server.shutdown()
server.server_close()
